package faulty

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

// grudging wraps a provider and makes its queue pairs refuse requests. The
// tests show how faulty treats a provider that cannot keep up or breaks.
type grudging struct {
	driver.Provider
	mu      sync.Mutex
	refuse  int // posts to refuse; later ones go through
	err     error
	refused int
}

func (g *grudging) Open(ctx context.Context, device string, opts driver.Options) (driver.Context, error) {
	c, err := g.Provider.Open(ctx, device, opts)
	return grudgingContext{c, g}, err
}

type grudgingContext struct {
	driver.Context
	g *grudging
}

func (c grudgingContext) CreateQP(ctx context.Context, cfg driver.QPConfig) (driver.QP, error) {
	q, err := c.Context.CreateQP(ctx, cfg)
	return grudgingQP{q, c.g}, err
}

type grudgingQP struct {
	driver.QP
	g *grudging
}

func (q grudgingQP) PostSend(wrs []driver.WorkRequest) (int, error) {
	q.g.mu.Lock()
	defer q.g.mu.Unlock()
	if q.g.refuse > 0 {
		q.g.refuse--
		q.g.refused++
		return 0, q.g.err
	}
	return q.QP.PostSend(wrs)
}

func grudgingPair(t *testing.T, refuse int, err error) (a, b *end, g *grudging) {
	t.Helper()
	wire := loop.New()
	g = &grudging{Provider: wire, refuse: refuse, err: err}
	a, b = open(t, New(g, Plan{DelayCompletions: 0.5})), open(t, wire)
	connect(t, a.qp, b.qp)
	return a, b, g
}

func TestRequestsStartOnceQueueBelowHasRoomWithoutPolls(t *testing.T) {
	a, b, g := grudgingPair(t, 5, driver.ErrQueueFull)
	b.offer(1, 0)
	b.offer(2, 0)
	a.post(a.send(1, 0), a.send(2, 0))
	require.Equal(t, uint64(1), b.next().ID)
	require.Equal(t, uint64(2), b.next().ID)
	require.Equal(t, 5, g.refused)
	a.expect(1, driver.Success, driver.Success)
}

func TestRequestRefusedBelowFails(t *testing.T) {
	for _, c := range []struct {
		refusal error
		status  driver.Status
	}{
		{driver.ErrState, driver.RetryExceeded},
		{driver.ErrLost, driver.RetryExceeded},
		{driver.ErrClosed, driver.RetryExceeded},
		{driver.ErrInvalid, driver.GeneralError},
		{driver.ErrUnsupported, driver.GeneralError},
	} {
		t.Run(c.refusal.Error(), func(t *testing.T) {
			a, b, _ := grudgingPair(t, 1, fmt.Errorf("below: %w", c.refusal))
			a.post(a.write(1, b, 0), a.write(2, b, 0))
			wc := a.next()
			require.Equal(t, c.status, wc.Status)
			require.ErrorIs(t, wc.Err, c.refusal)
			a.expect(2, driver.Flushed)
		})
	}
}

// An event that is under way during a QP's reset must not break the QP's next
// connection.
func TestEventOfEarlierConnectionIsDropped(t *testing.T) {
	d, q := &device{plan: &Plan{}}, &qp{state: driver.StateRTS}
	q.dev, d.qps, d.byNum = d, []*qp{q}, map[uint32]*qp{7: q}
	q.num = 7
	d.observe(driver.AsyncEvent{Kind: driver.EventQPFatal, QP: 7, Err: driver.ErrLost})
	q.life.Add(1)
	d.hear()
	require.Equal(t, driver.StateRTS, q.state)
	require.Empty(t, d.outbox)

	d.send(news{qp: q, life: q.life.Load()})
	require.True(t, d.outbox[0].current())
	q.life.Add(1)
	require.False(t, d.outbox[0].current())
}

// An event of the device itself reaches the owner, and ends all held requests.
func TestDeviceFatalEndsEveryQueuePair(t *testing.T) {
	events := make(chan driver.AsyncEvent, 4)
	bell := wait.NewLocal()
	p := New(loop.New(), Plan{DelayStarts: 1, MaxDelay: ages, MaxPolls: 1 << 40})
	ctx, err := p.Open(testwatch.Context(t), "loop0", driver.Options{Bell: bell, OnEvent: func(e driver.AsyncEvent) { events <- e }})
	require.NoError(t, err)
	defer ctx.Close()
	cq, err := ctx.CreateCQ(testwatch.Context(t), 4)
	require.NoError(t, err)
	qp, err := ctx.CreateQP(testwatch.Context(t), driver.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 2, RecvDepth: 1})
	require.NoError(t, err)
	for _, s := range []driver.State{driver.StateInit, driver.StateRTR, driver.StateRTS} {
		require.NoError(t, qp.Modify(testwatch.Context(t), s, driver.Attr{Peer: qp.Address()}))
	}
	n, err := qp.PostSend([]driver.WorkRequest{{ID: 1, Op: driver.OpSend}, {ID: 2, Op: driver.OpSend}})
	require.NoError(t, err)
	require.Equal(t, 2, n)

	ctx.(*device).observe(driver.AsyncEvent{Kind: driver.EventDeviceFatal, Err: driver.ErrLost})
	require.Equal(t, driver.EventDeviceFatal, (<-events).Kind)
	require.NoError(t, cq.Wait(testwatch.Context(t)))
	wc := make([]driver.Completion, 4)
	n, err = cq.Poll(wc)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.Equal(t, driver.RetryExceeded, wc[0].Status)
	require.Equal(t, driver.Flushed, wc[1].Status)
}
