package faulty

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

func TestCloseWithHeldRequestsEndsPump(t *testing.T) { // goleak checks that the pump has ended
	a, b := pair(t, Plan{DelayStarts: 1, DelayCompletions: 1, MaxDelay: ages, MaxPolls: 1 << 40})
	a.post(a.write(1, b, 0), a.write(2, b, 8))
	require.NoError(t, a.ctx.Close())
	require.NoError(t, a.ctx.Close(), "closing again")
	_, err := a.cq.Poll(make([]driver.Completion, 1))
	require.ErrorIs(t, err, driver.ErrClosed)
	_, err = a.qp.PostSend([]driver.WorkRequest{a.write(3, b, 0)})
	require.Error(t, err)
}

func TestClosingDeviceWakesWaiters(t *testing.T) {
	a, _ := pair(t, Plan{DelayStarts: 1})
	var g errgroup.Group
	g.Go(func() error { return a.cq.Wait(testwatch.Context(t)) })
	require.Eventually(t, func() bool { return a.bell.Parks() > 0 }, testwatch.Patience(), testwatch.Patience()/10_000)
	require.NoError(t, a.ctx.Close())
	require.NoError(t, g.Wait())
	_, err := a.cq.Poll(make([]driver.Completion, 1))
	require.ErrorIs(t, err, driver.ErrClosed)
}

func TestClosingCompletionQueueWakesWaiters(t *testing.T) {
	a, _ := pair(t, Plan{DelayStarts: 1})
	spare, err := a.ctx.CreateCQ(testwatch.Context(t), 4)
	require.NoError(t, err)
	var g errgroup.Group
	g.Go(func() error { return spare.Wait(testwatch.Context(t)) })
	require.Eventually(t, func() bool { return a.bell.Parks() > 0 }, testwatch.Patience(), testwatch.Patience()/10_000)
	require.NoError(t, spare.Close())
	require.NoError(t, g.Wait())
	_, err = spare.Poll(make([]driver.Completion, 1))
	require.ErrorIs(t, err, driver.ErrClosed)
}

func TestClosedQueuePairTellsThePeer(t *testing.T) {
	a, b := pair(t, Plan{DelayStarts: 1, MaxDelay: ages, MaxPolls: 1 << 40})
	a.post(a.write(1, b, 0))
	require.NoError(t, a.qp.Close())
	require.Equal(t, driver.EventQPFatal, b.event().Kind)
	a.nothing(100)
	require.Zero(t, b.get(0))
}

func TestCompletionsBeyondTheDepthOverrunTheQueue(t *testing.T) {
	wire := loop.New()
	a, b := open(t, New(wire, Plan{DelayCompletions: 0.5})), open(t, wire)
	small, err := a.ctx.CreateCQ(testwatch.Context(t), 2)
	require.NoError(t, err)
	a.cq = small
	a.qp = a.newQP()
	connect(t, a.qp, b.qp)
	for id := range uint64(8) {
		wr := a.write(id, b, 0)
		wr.Flags = 0 // unsignaled, so it cannot overrun
		a.post(wr)
	}
	a.nothing(100)
	a.post(a.write(1, b, 0), a.write(2, b, 0), a.write(3, b, 0))
	require.Eventually(t, func() bool {
		_, err = a.cq.Poll(nil)
		return err != nil
	}, testwatch.Patience(), testwatch.Patience()/10_000)
	for range 100 {
		_, err = a.cq.Poll(make([]driver.Completion, 1))
		require.ErrorIs(t, err, driver.ErrOverrun, "an overrun queue stays unusable")
	}
}

func TestQueuePairNeedsCompletionQueuesOfItsContext(t *testing.T) {
	p := New(loop.New(), Plan{DelayStarts: 1})
	var cqs [2]driver.CQ
	var ctxs [2]driver.Context
	for i := range ctxs {
		var err error
		ctxs[i], err = p.Open(testwatch.Context(t), "loop0", driver.Options{})
		require.NoError(t, err)
		defer ctxs[i].Close()
		cqs[i], err = ctxs[i].CreateCQ(testwatch.Context(t), 4)
		require.NoError(t, err)
	}
	_, err := ctxs[0].CreateQP(testwatch.Context(t), driver.QPConfig{SendCQ: cqs[0], RecvCQ: cqs[1], SendDepth: 1, RecvDepth: 1})
	require.ErrorIs(t, err, driver.ErrInvalid)
}

func TestPostAndPollAllocateNothing(t *testing.T) {
	a, b := pair(t, Plan{DelayStarts: 0.2, DelayCompletions: 0.2, Reorder: 0.2})
	wrs := []driver.WorkRequest{a.write(1, b, 0), a.read(2, b, 8, 0)}
	wrs[0].Flags |= driver.Inline
	wc := make([]driver.Completion, 4)
	round := func() {
		if n, err := a.qp.PostSend(wrs); n != len(wrs) {
			t.Errorf("took %d: %v", n, err)
		}
		for got := 0; got < len(wrs); {
			n, err := a.cq.Poll(wc)
			if err != nil {
				t.Error(err)
				return
			}
			got += n
		}
	}
	round()
	require.Zero(t, testing.AllocsPerRun(500, round))
}
