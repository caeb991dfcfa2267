//go:build linux

package shm_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/shm"
)

// works checks that both directions carry requests.
func works(t *testing.T, a, b *side) {
	t.Helper()
	for _, pair := range [][2]*side{{a, b}, {b, a}} {
		from, to := pair[0], pair[1]
		buf := make([]byte, 8)
		to.recv(1, buf)
		from.post(write(to.at(0), word(3)), send(2, word(4)))
		require.Equal(t, driver.Success, to.next().Status)
		require.Equal(t, driver.Success, from.next().Status)
		require.Equal(t, word(4), buf)
		require.Equal(t, word(3), to.arena.Bytes()[:8])
	}
}

func TestReconnectWorksInEitherOrder(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	works(t, a, b)
	for i := range 20 {
		first, second := a, b
		if i%2 == 1 {
			first, second = b, a
		}
		first.modify(driver.StateReset, nil)
		first.connect(second.qp.Address())
		first.post(send(9, word(1))) // waits: the peer is still in the old connection
		second.modify(driver.StateReset, nil)
		second.connect(first.qp.Address())
		buf := make([]byte, 8)
		second.recv(5, buf)
		require.Equal(t, driver.Success, first.next().Status)
		require.Equal(t, driver.Success, second.next().Status)
		require.Equal(t, word(1), buf)
		works(t, a, b)
	}
}

func TestPeerThatWasResetEndsTheConnection(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	works(t, a, b)
	b.modify(driver.StateReset, nil)
	a.nothing()
	wr := write(b.at(8), word(9))
	wr.ID = 4
	a.post(wr)
	wc := a.next()
	require.Equal(t, driver.RetryExceeded, wc.Status)
	require.ErrorIs(t, wc.Err, driver.ErrLost)
	require.ErrorContains(t, wc.Err, "reset")
	require.Equal(t, word(0), b.arena.Bytes()[8:16])
}

func TestPeerInErrEndsTheConnectionWithAnEvent(t *testing.T) {
	events := make(chan driver.AsyncEvent, 1)
	a, b := newPair(t, sideConfig{opts: driver.Options{OnEvent: func(ev driver.AsyncEvent) { events <- ev }}})
	works(t, a, b)
	a.recv(6, make([]byte, 8))
	b.modify(driver.StateErr, nil)
	wc := a.next()
	require.Equal(t, driver.Flushed, wc.Status)
	require.EqualValues(t, 6, wc.ID)
	ev := <-events
	require.Equal(t, driver.EventQPFatal, ev.Kind)
	require.ErrorIs(t, ev.Err, driver.ErrLost)
}

func TestResetRemovesUnpolledCompletions(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	wr := write(b.at(0), word(1))
	wr.Flags = driver.Signaled
	a.post(wr, wr, wr)
	a.modify(driver.StateReset, nil)
	a.nothing()
}

func TestMessagesSentBeforeCloseAreReceived(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	works(t, a, b)
	bufs := [2][]byte{make([]byte, 8), make([]byte, 8)}
	b.recv(1, bufs[0])
	b.recv(2, bufs[1])
	b.recv(3, make([]byte, 8))
	a.post(send(1, word(10)), send(2, word(11)))
	require.NoError(t, a.qp.Close())
	newSide(t, sideConfig{}) // another device comes and goes
	for i := range bufs {
		require.Equal(t, driver.Success, b.next().Status)
		require.Equal(t, word(uint64(10+i)), bufs[i])
	}
	require.Equal(t, driver.Flushed, b.next().Status)
}

// A QP of a rank that uses mapped memory only never sends a message.
func TestQPCommitsItsRingAtTheFirstMessage(t *testing.T) {
	const ring = 1 << 20
	a, b := newPair(t, sideConfig{provider: shm.Config{RingBytes: ring}})
	committed := func(s *side) int64 {
		n, err := shm.Committed(s.device)
		require.NoError(t, err)
		return n
	}
	a.post(write(b.at(0), word(3)))
	require.Less(t, committed(a), int64(ring))
	works(t, a, b)
	require.GreaterOrEqual(t, committed(a), int64(ring))
	require.GreaterOrEqual(t, committed(b), int64(ring))
}

func TestClosedQPsAreReusedLast(t *testing.T) {
	a := newSide(t, sideConfig{provider: shm.Config{MaxQPs: 3}})
	cfg := driver.QPConfig{SendCQ: a.cq, RecvCQ: a.cq, SendDepth: 1, RecvDepth: 1}
	create := func() driver.QP {
		q, err := a.device.CreateQP(context.Background(), cfg)
		require.NoError(t, err)
		return q
	}
	second, third := create(), create()
	_, err := a.device.CreateQP(context.Background(), cfg)
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.NoError(t, second.Close())
	require.NoError(t, second.Close(), "closing again")
	fourth := create()
	require.NotEqual(t, second.Num(), fourth.Num())
	require.NotEqual(t, second.Address(), fourth.Address())
	require.NoError(t, third.Close())
	b := newSide(t, sideConfig{})
	b.modify(driver.StateInit, nil)
	err = b.qp.Modify(context.Background(), driver.StateRTR, driver.Attr{Peer: second.Address()})
	require.ErrorIs(t, err, driver.ErrLost, "the address of a closed QP")
}

func TestWaitingRequestEndsWithoutPolls(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	for i := range 5 {
		a.post(send(1, word(uint64(i))), write(b.at(8), word(uint64(i))))
		buf := make([]byte, 8)
		time.Sleep(3 * time.Millisecond) // makes it more likely that the grace period is over
		b.recv(1, buf)
		require.Equal(t, driver.Success, b.next().Status) // a does not poll meanwhile
		require.Equal(t, word(uint64(i)), buf)
		require.Equal(t, driver.Success, a.next().Status)
	}
}

func TestQPOfTheSameContextCanBeThePeer(t *testing.T) {
	a := newSide(t, sideConfig{})
	a.connect(a.qp.Address()) // even itself
	buf := make([]byte, 8)
	a.recv(1, buf)
	a.post(send(2, word(6)), write(a.at(64), word(7)))
	require.Equal(t, driver.OpSend, a.next().Op)
	require.Equal(t, driver.OpRecv, a.next().Op)
	require.Equal(t, word(6), buf)
	require.Equal(t, word(7), a.arena.Bytes()[64:72])
}

func TestOpenRefusesUnsupportedConfig(t *testing.T) {
	ctx := context.Background()
	_, err := shm.New(shm.Config{}).Open(ctx, "shm1", driver.Options{})
	require.ErrorIs(t, err, driver.ErrInvalid)
	for _, cfg := range []shm.Config{{MaxQPs: -1}, {MaxQPs: 4097}, {MaxMRs: -1}, {RingBytes: 5000}, {RingBytes: 64}, {RingBytes: 1 << 30}} {
		_, err := shm.New(cfg).Open(ctx, "", driver.Options{})
		require.ErrorIs(t, err, driver.ErrInvalid, "%+v", cfg)
	}
	devices, err := shm.New(shm.Config{}).Devices(ctx)
	require.NoError(t, err)
	require.Len(t, devices, 1)
	require.True(t, devices[0].SameHost)
}

func TestRegistrationTableIsBoundedAndGrowsByPages(t *testing.T) {
	a := newSide(t, sideConfig{provider: shm.Config{MaxMRs: 200}})
	var mrs []driver.MR
	for range 199 { // the side has one
		mr, err := a.device.RegMR(context.Background(), a.arena.Memory(0, 8), driver.AllAccess)
		require.NoError(t, err)
		mrs = append(mrs, mr)
	}
	_, err := a.device.RegMR(context.Background(), a.arena.Memory(0, 8), driver.AllAccess)
	require.ErrorIs(t, err, driver.ErrUnsupported)
	require.NoError(t, mrs[100].Close())
	_, err = a.device.RegMR(context.Background(), a.arena.Memory(0, 8), driver.AllAccess)
	require.NoError(t, err)
}
