package verbstest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// queueCases lists the promises about depths of queues, and about completions.
func queueCases() []testCase {
	return []testCase{
		{"FullSendQueueTakesMoreAfterPolling", sendQueueFull},
		{"FullReceiveQueueIsAnError", recvQueueFull},
		{"UnsignaledRequestsHoldTheirSlots", unsignaledSlots},
		{"UnsignaledRequestsCompleteOnlyOnError", unsignaledSilent},
		{"CompletionSaysWhatItIsAbout", completionFields},
		{"PollTakesNoMoreThanAsked", pollBatches},
		{"LostCompletionsAreReported", overrun},
		{"SizesBeyondTheDeviceAreRefused", sizes},
		{"TwoQueuesShareOneCQ", sharedCQ},
		{"CanceledRequestsLeaveTheirSlotsThoughThePeerComesLater", canceledAhead},
	}
}

// sendQueueFull fills the queue with SENDs for which the peer has posted no
// receive.
func sendQueueFull(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	taken := 0
	for {
		n, err := a.qp.PostSend([]verbs.WorkRequest{{ID: uint64(taken), Op: verbs.OpSend, Flags: verbs.Signaled, Local: segs(a.at(0, 8))}})
		if taken += n; n == 0 {
			require.ErrorIs(t, err, driver.ErrQueueFull)
			if taken == a.cfg.depth || h.Wrap == nil {
				break
			}
		}
	}
	require.Equal(t, a.cfg.depth, taken)
	for i := range taken {
		b.postRecv(verbs.RecvRequest{ID: uint64(i), Local: segs(b.at(0, 8))})
		require.Equal(t, uint64(i), b.received().ID)
		require.Equal(t, uint64(i), a.sent().ID)
	}
	a.do(verbs.WorkRequest{ID: 99, Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)})
}

// recvQueueFull posts a receive more than the queue holds. One that was used leaves room for the
// next.
func recvQueueFull(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i := range b.cfg.depth {
		b.postRecv(verbs.RecvRequest{ID: uint64(i), Local: segs(b.at(i*8, 8))})
	}
	n, err := b.qp.PostRecv([]verbs.RecvRequest{{ID: 99}})
	require.Zero(t, n)
	require.ErrorIs(t, err, driver.ErrQueueFull)
	a.do(verbs.WorkRequest{Op: verbs.OpSend, Local: segs(a.at(0, 8))})
	require.Zero(t, b.received().ID)
	b.postRecv(verbs.RecvRequest{ID: 99})
}

// unsignaledSlots fills a queue with requests of which none yields a completion. Nothing tells that
// they have ended, so the queue stays full.
func unsignaledSlots(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	if h.Wrap != nil {
		t.Skip("a wrapper may call the queue full at any time")
	}
	write := verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)}
	for range 3 {
		for range a.cfg.depth - 1 {
			a.post(write)
		}
		a.do(write)
	}
	for range a.cfg.depth {
		a.post(write)
	}
	n, err := a.qp.PostSend([]verbs.WorkRequest{write})
	require.Zero(t, n)
	require.ErrorIs(t, err, driver.ErrQueueFull, "as on every device: nothing signaled, so nothing frees a slot")
}

// unsignaledSilent takes the next completion behind unsignaled requests: it must be of the signaled
// one.
func unsignaledSilent(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i := range 50 {
		a.post(verbs.WorkRequest{ID: 1, Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)})
		a.post(verbs.WorkRequest{ID: 1, Op: verbs.OpRead, Local: segs(a.at(8, 8)), Remote: b.mr.Remote(0)})
		wc := a.do(verbs.WorkRequest{ID: uint64(100 + i), Op: verbs.OpWrite, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)})
		require.Equal(t, uint64(100+i), wc.ID)
	}
}

// completionFields compares the fields that each completion has. Bytes counts for a READ alone.
func completionFields(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	to, num := b.mr.Remote(0), a.qp.Num()
	require.NotZero(t, num)
	for _, c := range []struct {
		wr    verbs.WorkRequest
		bytes int
	}{
		{verbs.WorkRequest{Op: verbs.OpRead, Local: segs(a.at(0, 100)), Remote: to}, 100},
		{verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, 100)), Remote: to}, -1},
		{verbs.WorkRequest{Op: verbs.OpFetchAdd, Local: segs(a.at(0, 8)), Remote: to}, -1},
		{verbs.WorkRequest{Op: verbs.OpCmpSwap, Local: segs(a.at(0, 8)), Remote: to}, -1},
		{verbs.WorkRequest{Op: verbs.OpSend, Local: segs(a.at(0, 8))}, -1},
		{verbs.WorkRequest{Op: verbs.OpWriteImm, Imm: 3, Local: segs(a.at(0, 8)), Remote: to}, -1},
	} {
		b.postRecv(verbs.RecvRequest{Local: segs(b.at(64, 8))})
		c.wr.ID = ^uint64(0) - uint64(c.wr.Op)
		wc := a.do(c.wr)
		require.Equal(t, c.wr.ID, wc.ID)
		require.Equal(t, c.wr.Op, wc.Op)
		require.Equal(t, num, wc.QP)
		require.NoError(t, wc.Err)
		if c.bytes >= 0 {
			require.Equal(t, c.bytes, wc.Bytes)
		}
	}
}

// pollBatches polls with room for none, and then for three completions at a time.
func pollBatches(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for i := range 10 {
		a.post(verbs.WorkRequest{ID: uint64(i), Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)})
	}
	n, err := a.scq.Poll(nil)
	require.NoError(t, err)
	require.Zero(t, n)
	var ids []uint64
	for _, wc := range a.early {
		ids = append(ids, wc.ID)
	}
	for end := time.Now().Add(testwatch.Patience()); len(ids) < 10; {
		require.True(t, time.Now().Before(end), "got %v only", ids)
		var wc [3]verbs.Completion
		n, err := a.scq.Poll(wc[:])
		require.NoError(t, err)
		for i := range n {
			ids = append(ids, wc[i].ID)
		}
	}
	require.Equal(t, []uint64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, ids)
}

// overrun lets more requests complete than the CQ holds. The provider decides
// when they complete, so overrun tries until some were lost.
func overrun(t *testing.T, h Harness) {
	a, b := newPair(t, h, withCQDepth(2), withDepth(64))
	for end := time.Now().Add(testwatch.Patience()); ; {
		require.True(t, time.Now().Before(end), "no completion was ever lost")
		posted := 0
		for range 60 {
			n, err := a.qp.PostSend([]verbs.WorkRequest{{Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)}})
			posted += n
			if err != nil {
				break // a wrapper's full queue, or a provider that noticed
			}
		}
		time.Sleep(time.Millisecond)
		for got := 0; got < posted; {
			if _, err := next(a.scq); err != nil {
				require.ErrorIs(t, err, driver.ErrOverrun)
				_, err = a.scq.Poll(make([]verbs.Completion, 1))
				require.ErrorIs(t, err, driver.ErrOverrun, "it stays unusable")
				return
			}
			got++
		}
	}
}

// sizes creates queues that are larger than the device allows, empty, or of another context.
func sizes(t *testing.T, h Harness) {
	a, _ := newStrangers(t, h)
	info := a.ctx.Info()
	for _, depth := range []int{-1, 0, info.MaxCQDepth + 1} {
		_, err := a.ctx.CreateCQ(testwatch.Context(t), depth)
		require.ErrorIs(t, err, driver.ErrInvalid)
	}
	good := verbs.QPConfig{SendCQ: a.scq, RecvCQ: a.rcq, SendDepth: 1, RecvDepth: 1}
	for name, spoil := range map[string]func(*verbs.QPConfig){
		"no send CQ":        func(c *verbs.QPConfig) { c.SendCQ = nil },
		"no receive CQ":     func(c *verbs.QPConfig) { c.RecvCQ = nil },
		"send depth":        func(c *verbs.QPConfig) { c.SendDepth = info.MaxQPDepth + 1 },
		"no send depth":     func(c *verbs.QPConfig) { c.SendDepth = 0 },
		"receive depth":     func(c *verbs.QPConfig) { c.RecvDepth = info.MaxQPDepth + 1 },
		"negative depth":    func(c *verbs.QPConfig) { c.RecvDepth = -1 },
		"segments":          func(c *verbs.QPConfig) { c.MaxSegments = info.MaxSegments + 1 },
		"inline":            func(c *verbs.QPConfig) { c.MaxInline = info.MaxInline + 1 },
		"CQ of another end": func(c *verbs.QPConfig) { other, _ := newStrangers(t, h); c.SendCQ = other.scq },
	} {
		cfg := good
		spoil(&cfg)
		_, err := a.pd.CreateQP(testwatch.Context(t), cfg)
		require.ErrorIs(t, err, driver.ErrInvalid, name)
	}
	qp, err := a.pd.CreateQP(testwatch.Context(t), good)
	require.NoError(t, err)
	require.NoError(t, qp.Close())
}

// sharedCQ has three QPs complete into one CQ. Each completion names its QP, and those of one QP
// come in order.
func sharedCQ(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	cq := a.newCQ(64)
	qps := map[uint32]*verbs.QP{}
	for range 3 {
		qp := a.newQPOn(cq, cq)
		connect(t, qp, b.newQP())
		qps[qp.Num()] = qp
	}
	require.Len(t, qps, 3, "numbers are unique in a context")
	for num, qp := range qps {
		for i := range 4 {
			_, err := qp.PostSend([]verbs.WorkRequest{{ID: uint64(num)<<8 + uint64(i), Op: verbs.OpWrite, Flags: verbs.Signaled,
				Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)}})
			if errors.Is(err, driver.ErrQueueFull) && h.Wrap != nil {
				t.Skip("a wrapper may call the queue full at any time")
			}
			require.NoError(t, err)
		}
	}
	count := map[uint32]uint64{}
	for range 12 {
		wc := a.completion(cq)
		require.Equal(t, uint64(wc.QP)<<8+count[wc.QP], wc.ID, "in order for each QP")
		count[wc.QP]++
	}
	require.Len(t, count, 3)
}

// canceledAhead fills the queue before the peer is connected, and cancels everything.
func canceledAhead(t *testing.T, h Harness) {
	a, b := newStrangers(t, h)
	if h.Wrap != nil {
		t.Skip("a wrapper may hold requests elsewhere")
	}
	require.NoError(t, a.qp.Connect(testwatch.Context(t), b.qp.Address(), 0))
	for i := range a.cfg.depth {
		a.post(verbs.WorkRequest{ID: uint64(1 + i), Op: verbs.OpRead, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)})
	}
	for i := range a.cfg.depth {
		if !a.qp.Cancel(uint64(1 + i)) {
			t.Skip("the device takes no request back")
		}
		a.sent()
	}
	require.NoError(t, b.qp.Connect(testwatch.Context(t), a.qp.Address(), 0))
	for i := range 3 * a.cfg.depth {
		write := verbs.WorkRequest{ID: uint64(100 + i), Op: verbs.OpWrite, Flags: verbs.Signaled, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)}
		for ctx, taken := testwatch.Context(t), 0; taken == 0; {
			require.NoError(t, ctx.Err(), "no slot is free")
			taken, _ = a.qp.PostSend([]verbs.WorkRequest{write})
			_, _ = a.scq.Poll(nil)
		}
		require.Equal(t, write.ID, a.sent().ID)
	}
}
