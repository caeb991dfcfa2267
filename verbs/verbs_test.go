package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

func TestOpenReturnsCause(t *testing.T) {
	m := newMoody()
	m.devices = func() ([]driver.DeviceInfo, error) { return nil, nil }
	_, err := verbs.Open(t.Context(), m, "", verbs.Options{})
	require.ErrorContains(t, err, "no device")
	m.devices = func() ([]driver.DeviceInfo, error) { return nil, errDevice }
	_, err = verbs.Open(t.Context(), m, "", verbs.Options{})
	require.ErrorIs(t, err, errDevice)
	_, err = verbs.Open(t.Context(), m, "mlx5_0", verbs.Options{})
	var op *verbs.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, "mlx5_0", op.Device)
}

func TestDeviceRefusalsReturnOpErrors(t *testing.T) {
	r := newRig(t, verbs.Options{})
	for call, do := range map[string]func() error{
		"RegMR": func() error {
			_, err := r.pd.RegMR(t.Context(), verbs.Memory{Bytes: make([]byte, 8)}, 0)
			return err
		},
		"CreateCQ": func() error { _, err := r.ctx.CreateCQ(t.Context(), 1); return err },
		"CreateQP": func() error { _, err := r.pd.CreateQP(t.Context(), r.config()); return err },
		"PostSend": func() error { _, err := r.qp.PostSend([]verbs.WorkRequest{r.write(t)}); return err },
		"PostRecv": func() error { _, err := r.qp.PostRecv([]verbs.RecvRequest{{}}); return err },
	} {
		r.m.refuse[call] = true
		err := do()
		require.ErrorIs(t, err, errDevice, call)
		var op *verbs.OpError
		require.ErrorAs(t, err, &op, call)
		require.Equal(t, "loop", op.Provider)
	}
	clear(r.m.refuse)
	require.NoError(t, r.qp.Close())
	require.NoError(t, r.cq.Close(), "a QP that was refused holds no CQ")
	require.NoError(t, r.mr.Close())
	require.NoError(t, r.pd.Close(), "nor its PD")
}

func TestSlotsOfRefusedRequestsAreFree(t *testing.T) {
	r := newRig(t, verbs.Options{})
	wr := r.write(t)
	r.m.refuse["PostSend"], r.m.take = true, 1
	n, err := r.qp.PostSend([]verbs.WorkRequest{wr, wr, wr})
	require.Equal(t, 1, n)
	var op *verbs.OpError
	require.ErrorAs(t, err, &op)
	require.Equal(t, 1, op.Index)
	clear(r.m.refuse)
	n, err = r.qp.PostSend([]verbs.WorkRequest{wr, wr, wr, wr})
	require.Equal(t, 3, n, "one of four slots is in use")
	require.ErrorIs(t, err, driver.ErrQueueFull)
	r.poll(t, 4)

	r.m.refuse["PostRecv"] = true
	n, err = r.qp.PostRecv(make([]verbs.RecvRequest, 3))
	require.Equal(t, 1, n)
	require.ErrorIs(t, err, errDevice)
	clear(r.m.refuse)
	n, err = r.qp.PostRecv(make([]verbs.RecvRequest, 4))
	require.Equal(t, 3, n)
	require.ErrorIs(t, err, driver.ErrQueueFull)
}

func TestRefusedTransitionKeepsState(t *testing.T) {
	r := newRig(t, verbs.Options{})
	qp := r.newQP(t)
	for _, to := range []verbs.State{verbs.StateInit, verbs.StateRTR, verbs.StateRTS} {
		r.m.refuse["Modify "+to.String()] = true
		before := qp.State()
		require.ErrorIs(t, qp.Modify(t.Context(), to, verbs.Attr{Peer: r.qp.Address()}), errDevice)
		require.Equal(t, before, qp.State())
		clear(r.m.refuse)
		require.NoError(t, qp.Modify(t.Context(), verbs.StateReset, verbs.Attr{}))
		for s := verbs.StateInit; s <= to; s++ {
			require.NoError(t, qp.Modify(t.Context(), s, verbs.Attr{Peer: qp.Address()}))
		}
	}
	fresh := r.newQP(t)
	r.m.refuse["Modify RTS"] = true
	require.ErrorIs(t, fresh.Connect(t.Context(), r.qp.Address(), 0), errDevice)
	require.Equal(t, verbs.StateRTR, fresh.State())
	r.m.refuse["Modify RESET"] = true
	require.ErrorIs(t, qp.Modify(t.Context(), verbs.StateReset, verbs.Attr{}), errDevice)
	require.Equal(t, verbs.StateRTS, qp.State())
}

func TestEventsMoveTheirQPsToErr(t *testing.T) {
	var heard []verbs.AsyncEvent
	r := newRig(t, verbs.Options{OnEvent: func(e verbs.AsyncEvent) { heard = append(heard, e) }})
	other, idle := r.newQP(t), r.newQP(t)
	require.NoError(t, other.Connect(t.Context(), other.Address(), 0))
	r.m.opts.OnEvent(verbs.AsyncEvent{Kind: verbs.EventQPFatal, QP: other.Num()})
	require.Equal(t, verbs.StateErr, other.State())
	require.Equal(t, verbs.StateRTS, r.qp.State())
	r.m.opts.OnEvent(verbs.AsyncEvent{Kind: verbs.EventDeviceFatal})
	require.Equal(t, verbs.StateErr, r.qp.State())
	require.Equal(t, verbs.StateReset, idle.State(), "one that is not in use stays as it is")
	require.Len(t, heard, 2)
}

func TestLateEventOfEarlierConnectionIsIgnored(t *testing.T) {
	r := newRig(t, verbs.Options{})
	old := verbs.AsyncEvent{Kind: verbs.EventQPFatal, QP: r.qp.Num()}
	require.NoError(t, r.qp.Modify(t.Context(), verbs.StateReset, verbs.Attr{}))
	require.NoError(t, r.qp.Connect(t.Context(), r.qp.Address(), 0))
	r.m.opts.OnEvent(old)
	require.Equal(t, verbs.StateRTS, r.qp.State())
	old.Life = 1
	r.m.opts.OnEvent(old)
	require.Equal(t, verbs.StateErr, r.qp.State())
}

func TestMissingOptionalInterfacesReturnErrUnsupported(t *testing.T) {
	r := newRig(t, verbs.Options{})
	_, err := r.qp.Map(t.Context(), r.mr.Remote(0), 8, verbs.RemoteRead)
	require.ErrorIs(t, err, driver.ErrUnsupported)
	_, ok := r.qp.PeerBell()
	require.False(t, ok)
	require.False(t, r.qp.Cancel(1))
}

func TestCreatingAndClosingManyRegionsAndQPs(t *testing.T) {
	r := newRig(t, verbs.Options{})
	keys := map[verbs.Key]bool{}
	for range 100 {
		qp := r.newQP(t)
		mr, err := r.pd.RegMR(t.Context(), verbs.Memory{Bytes: make([]byte, 8)}, 0)
		require.NoError(t, err)
		keys[mr.LKey()] = true
		require.NoError(t, qp.Close())
		require.NoError(t, mr.Close())
	}
	require.Len(t, keys, 100)
	_, err := r.qp.PostSend([]verbs.WorkRequest{r.write(t)})
	require.NoError(t, err)
	r.poll(t, 1)
}

func TestClosedContextClosesItsObjects(t *testing.T) {
	r := newRig(t, verbs.Options{})
	require.ErrorIs(t, r.pd.Close(), verbs.ErrInUse)
	require.NoError(t, r.ctx.Close())
	_, err := r.cq.Poll(make([]verbs.Completion, 1))
	require.ErrorIs(t, err, driver.ErrClosed)
	_, err = r.qp.PostSend([]verbs.WorkRequest{r.write(t)})
	require.ErrorIs(t, err, driver.ErrClosed)
	require.NoError(t, r.pd.Close(), "nothing is left to hold it")
	require.NoError(t, r.cq.Close())
	require.NoError(t, r.qp.Close())
	require.NoError(t, r.mr.Close())
}
