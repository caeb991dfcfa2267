package loop

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
)

func TestMain(m *testing.M) { testwatch.Main(m) }

// end holds one rank's objects, without the checks of package verbs in between.
type end struct {
	t      *testing.T
	ctx    driver.Context
	cq     driver.CQ
	qp     driver.QP
	mr     driver.MR
	mem    []byte
	events chan driver.AsyncEvent
}

func newEnd(t *testing.T, p *Provider) *end {
	t.Helper()
	e := &end{t: t, mem: make([]byte, 1024), events: make(chan driver.AsyncEvent, 16)}
	var err error
	e.ctx, err = p.Open(t.Context(), deviceName, driver.Options{OnEvent: func(ev driver.AsyncEvent) { e.events <- ev }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.ctx.Close()) })
	e.cq, err = e.ctx.CreateCQ(t.Context(), 64)
	require.NoError(t, err)
	e.qp, err = e.ctx.CreateQP(t.Context(), driver.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 8, RecvDepth: 8, MaxSegments: 4})
	require.NoError(t, err)
	e.mr, err = e.ctx.RegMR(t.Context(), driver.Memory{Bytes: e.mem}, driver.AllAccess)
	require.NoError(t, err)
	return e
}

func newEnds(t *testing.T) (a, b *end) {
	t.Helper()
	p := New()
	return newEnd(t, p), newEnd(t, p)
}

func (e *end) connect(peer *end, timeout time.Duration) {
	e.t.Helper()
	e.modify(driver.StateInit, driver.Attr{})
	e.modify(driver.StateRTR, driver.Attr{Peer: peer.qp.Address()})
	e.modify(driver.StateRTS, driver.Attr{Timeout: timeout})
}

func (e *end) modify(to driver.State, attr driver.Attr) {
	e.t.Helper()
	require.NoError(e.t, e.qp.Modify(e.t.Context(), to, attr))
}

func (e *end) remote(offset int) driver.RemoteAddr {
	return driver.RemoteAddr{Addr: e.mr.Addr(), RKey: e.mr.RKey()}.Add(uint64(offset))
}

func (e *end) post(op driver.Opcode, id uint64, to driver.RemoteAddr) {
	e.t.Helper()
	n, err := e.qp.PostSend([]driver.WorkRequest{{ID: id, Op: op, Flags: driver.Signaled,
		Local: []driver.Segment{{Mem: e.mem[:8]}}, Remote: to}})
	require.NoError(e.t, err)
	require.Equal(e.t, 1, n)
}

func (e *end) next() driver.Completion {
	e.t.Helper()
	ctx, cancel := testwatch.With(context.Background())
	defer cancel()
	require.NoError(e.t, e.cq.Wait(ctx))
	wc := make([]driver.Completion, 1)
	n, err := e.cq.Poll(wc)
	require.NoError(e.t, err)
	require.Equal(e.t, 1, n)
	return wc[0]
}

func (e *end) event() driver.AsyncEvent {
	e.t.Helper()
	select {
	case ev := <-e.events:
		return ev
	case <-testwatch.Context(e.t).Done():
		e.t.Fatal("no event came")
		return driver.AsyncEvent{}
	}
}

func TestRequestToUnconnectedPeerEndsInRetryExceeded(t *testing.T) {
	a, b := newEnds(t)
	a.connect(b, 20*time.Millisecond)
	a.post(driver.OpWrite, 1, b.remote(0))
	a.post(driver.OpWrite, 2, b.remote(0))
	wc := a.next()
	require.Equal(t, driver.RetryExceeded, wc.Status)
	require.ErrorIs(t, wc.Err, driver.ErrLost)
	require.Equal(t, driver.Flushed, a.next().Status)
	require.Equal(t, driver.EventQPFatal, a.event().Kind)
}

func TestPeerThatConnectsStopsTimer(t *testing.T) {
	a, b := newEnds(t)
	a.connect(b, testwatch.Patience())
	a.post(driver.OpWrite, 1, b.remote(0))
	require.NotNil(t, a.qp.(*qp).timer)
	b.connect(a, 0)
	require.Equal(t, driver.Success, a.next().Status)
	require.Nil(t, a.qp.(*qp).timer)
	a.post(driver.OpSend, 2, b.remote(0))
	require.Nil(t, a.qp.(*qp).timer, "a SEND may wait for its receive as long as it likes")
}

func TestTimerStoppedTooLateBreaksNoConnection(t *testing.T) {
	a, b := newEnds(t)
	a.connect(b, testwatch.Patience())
	a.post(driver.OpWrite, 1, b.remote(0))
	q := a.qp.(*qp)
	stale := q.timer
	b.connect(a, 0)
	q.expire(&stale)
	require.Equal(t, driver.Success, a.next().Status)
	a.post(driver.OpWrite, 2, b.remote(0))
	require.Equal(t, driver.Success, a.next().Status)
}

func TestQueuedSendFailsWhenPeerBreaks(t *testing.T) {
	for name, breakPeer := range map[string]func(b *end){
		"by ERR":   func(b *end) { b.modify(driver.StateErr, driver.Attr{}) },
		"by Close": func(b *end) { require.NoError(t, b.qp.Close()) },
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newEnds(t)
			a.connect(b, 0)
			b.connect(a, 0)
			a.post(driver.OpSend, 1, driver.RemoteAddr{})
			breakPeer(b)
			require.Equal(t, driver.RetryExceeded, a.next().Status)
		})
	}
}

func TestBrokenQueuePairLeavesErrByResetOnly(t *testing.T) {
	a, b := newEnds(t)
	a.connect(b, 0)
	b.connect(a, 0)
	require.NoError(t, b.qp.Close()) // package verbs learns of it later
	for _, to := range []driver.State{driver.StateInit, driver.StateRTR, driver.StateRTS, driver.StateSQD} {
		require.ErrorIs(t, a.qp.Modify(t.Context(), to, driver.Attr{Peer: a.qp.Address()}), driver.ErrState, "%v", to)
	}
	a.modify(driver.StateReset, driver.Attr{})
}

func TestQueuedSendSurvivesPeerReset(t *testing.T) {
	a, b := newEnds(t)
	a.connect(b, testwatch.Patience())
	b.connect(a, 0)
	a.post(driver.OpSend, 1, driver.RemoteAddr{})
	b.modify(driver.StateReset, driver.Attr{})
	require.NotNil(t, a.qp.(*qp).timer, "now it waits for the peer to connect")
	b.modify(driver.StateInit, driver.Attr{})
	_, err := b.qp.PostRecv([]driver.RecvRequest{{ID: 7, Local: []driver.Segment{{Mem: b.mem[:8]}}}})
	require.NoError(t, err)
	b.modify(driver.StateRTR, driver.Attr{Peer: a.qp.Address()})
	require.Equal(t, uint64(7), b.next().ID)
	require.Equal(t, driver.Success, a.next().Status)
}

func TestPeerConnectedElsewhereTakesNoRequest(t *testing.T) {
	p := New()
	a, b, c := newEnd(t, p), newEnd(t, p), newEnd(t, p)
	b.connect(c, 0)
	a.connect(b, 0)
	a.post(driver.OpWrite, 1, b.remote(0))
	wc := a.next()
	require.Equal(t, driver.RetryExceeded, wc.Status)
	require.ErrorContains(t, wc.Err, "another queue pair")
}

func TestBothEndsBreakWhenTheTargetRefuses(t *testing.T) {
	a, b := newEnds(t)
	a.connect(b, 0)
	b.connect(a, 0)
	_, err := b.qp.PostRecv([]driver.RecvRequest{{ID: 5}})
	require.NoError(t, err)
	a.post(driver.OpWrite, 1, b.remote(1020))
	require.Equal(t, driver.RemoteAccess, a.next().Status)
	wc := b.next()
	require.Equal(t, uint64(5), wc.ID)
	require.Equal(t, driver.Flushed, wc.Status)
	ev := b.event()
	require.Equal(t, b.qp.Num(), ev.QP)
	require.ErrorIs(t, ev.Err, driver.ErrAccess)
}

func TestProvidersDoNotReachEachOther(t *testing.T) {
	a, b := newEnd(t, New()), newEnd(t, New())
	a.modify(driver.StateInit, driver.Attr{})
	require.ErrorIs(t, a.qp.Modify(t.Context(), driver.StateRTR, driver.Attr{Peer: b.qp.Address()}), driver.ErrLost)
	require.ErrorIs(t, a.qp.Modify(t.Context(), driver.StateRTR, driver.Attr{Peer: []byte("short")}), driver.ErrInvalid)
	_, err := New().Open(t.Context(), "loop1", driver.Options{})
	require.ErrorIs(t, err, driver.ErrInvalid)
}

func TestCancelEndsOneRequest(t *testing.T) {
	a, b := newEnds(t)
	a.connect(b, 0)
	b.connect(a, 0)
	for id := range uint64(4) {
		a.post(driver.OpSend, id, driver.RemoteAddr{})
	}
	_, err := a.qp.PostRecv([]driver.RecvRequest{{ID: 10}, {ID: 11}, {ID: 12}})
	require.NoError(t, err)
	for _, id := range []uint64{2, 0, 99, 11} {
		a.qp.(driver.Canceler).Cancel(id)
	}
	for _, id := range []uint64{2, 0, 11} {
		wc := a.next()
		require.Equal(t, id, wc.ID)
		require.Equal(t, driver.Canceled, wc.Status)
	}
	_, err = b.qp.PostRecv([]driver.RecvRequest{{ID: 1, Local: []driver.Segment{{Mem: b.mem[:8]}}}, {ID: 3, Local: []driver.Segment{{Mem: b.mem[:8]}}}})
	require.NoError(t, err)
	require.Equal(t, uint64(1), a.next().ID)
	require.Equal(t, uint64(3), a.next().ID)
	_, err = b.qp.PostSend([]driver.WorkRequest{{Op: driver.OpSend}, {Op: driver.OpSend}})
	require.NoError(t, err)
	require.Equal(t, uint64(10), a.next().ID)
	require.Equal(t, uint64(12), a.next().ID)
}

func TestQueuePairConnectsToItself(t *testing.T) {
	a := newEnd(t, New())
	a.connect(a, 0)
	copy(a.mem, "loopback")
	a.post(driver.OpWrite, 1, a.remote(64))
	require.Equal(t, driver.Success, a.next().Status)
	require.Equal(t, "loopback", string(a.mem[64:72]))
	a.post(driver.OpSend, 2, driver.RemoteAddr{})
	_, err := a.qp.PostRecv([]driver.RecvRequest{{ID: 3, Local: []driver.Segment{{Mem: a.mem[128:136]}}}})
	require.NoError(t, err)
	require.Equal(t, uint64(3), a.next().ID)
	require.Equal(t, uint64(2), a.next().ID)
	a.post(driver.OpWrite, 4, a.remote(1020))
	require.Equal(t, driver.RemoteAccess, a.next().Status)
}

// TestEndsThatBreakEachOtherDoNotDeadlock has both ends of many connections
// fail, close and kick each other at the same time.
func TestEndsThatBreakEachOtherDoNotDeadlock(t *testing.T) {
	for range 200 {
		a, b := newEnds(t)
		a.connect(b, 0)
		b.connect(a, 0)
		var both sync.WaitGroup
		for i, e := range []*end{a, b} {
			peer := []*end{b, a}[i]
			both.Go(func() {
				local := []driver.Segment{{Mem: e.mem[:8]}}
				_, _ = e.qp.PostSend([]driver.WorkRequest{{Op: driver.OpSend, Local: local},
					{Op: driver.OpWrite, Local: local, Remote: peer.remote(1020)}})
				_, _ = e.qp.PostRecv([]driver.RecvRequest{{Local: []driver.Segment{{Mem: e.mem[8:16]}}}})
				_ = e.qp.Close()
			})
		}
		done := make(chan struct{})
		go func() { both.Wait(); close(done) }()
		select {
		case <-done:
		case <-testwatch.Context(t).Done():
			t.Fatal("deadlock")
		}
		require.NoError(t, a.ctx.Close())
		require.NoError(t, b.ctx.Close())
	}
}
