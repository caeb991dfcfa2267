package trace_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/trace"
	"github.com/gopgas/gopgas/verbs/verbstest"
)

func TestMain(m *testing.M) { testwatch.Main(m) }

func TestConformanceOfTracedLoop(t *testing.T) {
	verbstest.Run(t, verbstest.Harness{
		New: func(*testing.T) (a, b driver.Provider) {
			p := loop.New()
			return p, p
		},
		NewMemory: func(_ *testing.T, n int) driver.Memory {
			return driver.Memory{Kind: driver.KindHeap, Bytes: make([]byte, n)}
		},
		Wrap: func(p driver.Provider) driver.Provider { return trace.New(p, trace.WithSink(func(trace.Event) {})) },
	})
}

// end is one end of a connection.
type end struct {
	t  testing.TB
	cq *verbs.CQ
	qp *verbs.QP
	mr *verbs.MR
}

func open(t testing.TB, p driver.Provider) *end {
	t.Helper()
	ctx, err := verbs.Open(testwatch.Context(t), p, "", driver.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ctx.Close()) })
	pd, err := ctx.AllocPD()
	require.NoError(t, err)
	e := &end{t: t}
	e.cq, err = ctx.CreateCQ(testwatch.Context(t), 32)
	require.NoError(t, err)
	e.mr, err = pd.RegMR(testwatch.Context(t), driver.Memory{Bytes: make([]byte, 4096)}, driver.AllAccess)
	require.NoError(t, err)
	e.qp, err = pd.CreateQP(testwatch.Context(t), verbs.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: 8, RecvDepth: 8, MaxSegments: 2, MaxInline: 64})
	require.NoError(t, err)
	return e
}

// pair connects two traced ends; a is on context 0, b on context 1.
func pair(t testing.TB, opts ...trace.Option) (p *trace.Provider, a, b *end) {
	t.Helper()
	p = trace.New(loop.New(), opts...)
	a, b = open(t, p), open(t, p)
	require.NoError(t, a.qp.Connect(testwatch.Context(t), b.qp.Address(), 0))
	require.NoError(t, b.qp.Connect(testwatch.Context(t), a.qp.Address(), 0))
	return p, a, b
}

func (e *end) at(offset, n int) driver.Segment {
	e.t.Helper()
	s, err := e.mr.Segment(offset, n)
	require.NoError(e.t, err)
	return s
}

func (e *end) post(wrs ...driver.WorkRequest) {
	e.t.Helper()
	_, err := e.qp.PostSend(wrs)
	require.NoError(e.t, err)
}

// next polls until it gets a completion.
func (e *end) next() driver.Completion {
	e.t.Helper()
	var wc [1]driver.Completion
	for {
		n, err := e.cq.Poll(wc[:])
		require.NoError(e.t, err)
		if n == 1 {
			return wc[0]
		}
		require.NoError(e.t, e.cq.Wait(testwatch.Context(e.t)))
	}
}

func TestRequestsAreCountedByOpcodeBytesAndFlags(t *testing.T) {
	p, a, b := pair(t)
	to := b.mr.Remote(0)
	a.post(
		driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Inline, Local: []driver.Segment{a.at(0, 8)}, Remote: to},
		driver.WorkRequest{Op: driver.OpWrite, Local: []driver.Segment{a.at(0, 100), a.at(200, 11)}, Remote: to},
		driver.WorkRequest{Op: driver.OpRead, Flags: driver.Signaled | driver.Fence, Local: []driver.Segment{a.at(0, 5)}, Remote: to})
	a.next()
	s := p.Snapshot().Total
	require.Equal(t, uint64(2), s.Posted[driver.OpWrite])
	require.Equal(t, uint64(119), s.Bytes[driver.OpWrite])
	require.Equal(t, uint64(1), s.Posted[driver.OpRead])
	require.Equal(t, uint64(5), s.Bytes[driver.OpRead])
	require.Equal(t, uint64(3), s.Requests())
	require.Equal(t, uint64(1), s.PostCalls, "three requests, one doorbell")
	require.Equal(t, uint64(1), s.Inline)
	require.Equal(t, uint64(1), s.Signaled)
	require.Equal(t, uint64(1), s.Fenced)
	require.Zero(t, s.Solicited)
	require.Equal(t, uint64(1), s.Completions[driver.Success])
	require.Zero(t, s.Refused)
}

func TestEachQueuePairHasCountsOfItsOwn(t *testing.T) {
	p, a, b := pair(t)
	_, err := b.qp.PostRecv([]driver.RecvRequest{{ID: 1}, {ID: 2}})
	require.NoError(t, err)
	a.post(driver.WorkRequest{Op: driver.OpSend}, driver.WorkRequest{Op: driver.OpSend, Flags: driver.Signaled | driver.Solicited})
	a.next()
	b.next()
	b.next()
	s := p.Snapshot()
	require.Len(t, s.QPs, 2)
	qa, qb := s.QPs[trace.QP{Context: 0, Num: a.qp.Num()}], s.QPs[trace.QP{Context: 1, Num: b.qp.Num()}]
	require.Equal(t, uint64(2), qa.Posted[driver.OpSend])
	require.Equal(t, uint64(1), qa.Solicited)
	require.Zero(t, qa.Recvs)
	require.Equal(t, uint64(1), qa.Completions[driver.Success])
	require.Equal(t, uint64(2), qb.Recvs)
	require.Equal(t, uint64(1), qb.RecvCalls)
	require.Zero(t, qb.Requests())
	require.Equal(t, uint64(2), qb.Completions[driver.Success])
	require.Equal(t, uint64(3), s.Total.Completions[driver.Success])
}

func TestFailuresAreCountedByStatus(t *testing.T) {
	p, a, b := pair(t)
	bad := driver.WorkRequest{Op: driver.OpWrite, Local: []driver.Segment{a.at(0, 8)}, Remote: b.mr.Remote(4096)}
	a.post(bad, bad)
	a.next()
	a.next()
	s := p.Snapshot().Total
	require.Equal(t, uint64(1), s.Completions[driver.RemoteAccess])
	require.Equal(t, uint64(1), s.Completions[driver.Flushed])
}

func TestPollsAndWaitsAreCounted(t *testing.T) {
	p, a, b := pair(t)
	var wc [1]driver.Completion
	for range 3 {
		_, err := a.cq.Poll(wc[:])
		require.NoError(t, err)
	}
	a.post(driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Signaled, Local: []driver.Segment{a.at(0, 8)}, Remote: b.mr.Remote(0)})
	require.NoError(t, a.cq.Wait(testwatch.Context(t)))
	a.next()
	s := p.Snapshot()
	require.Equal(t, uint64(4), s.Polls)
	require.Equal(t, uint64(3), s.EmptyPolls)
	require.Equal(t, uint64(1), s.Waits)
}

func TestOnlyRequestsThatWereTakenCount(t *testing.T) {
	// Every post of two is taken in part while a completion is at hand.
	p := trace.New(faulty.New(loop.New(), faulty.Plan{PartialPosts: 1}))
	a, b := open(t, p), open(t, p)
	require.NoError(t, a.qp.Connect(testwatch.Context(t), b.qp.Address(), 0))
	require.NoError(t, b.qp.Connect(testwatch.Context(t), a.qp.Address(), 0))
	wr := driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Signaled, Local: []driver.Segment{a.at(0, 8)}, Remote: b.mr.Remote(0)}
	taken, refused := 0, 0
	for range 20 {
		n, err := a.qp.PostSend([]driver.WorkRequest{wr, wr})
		taken += n
		if err != nil {
			refused++
		}
		for range n {
			a.next()
		}
	}
	require.Positive(t, refused)
	s := p.Snapshot().Total
	require.Equal(t, uint64(taken), s.Posted[driver.OpWrite])
	require.Equal(t, uint64(refused), s.Refused)
	require.Equal(t, uint64(20), s.PostCalls)
}

func TestMapsAndCancelsAreCountedAndMappedStoresAreNot(t *testing.T) {
	p, a, b := pair(t)
	view, err := a.qp.Map(testwatch.Context(t), b.mr.Remote(0), 8, driver.RemoteWrite)
	require.NoError(t, err)
	view[0] = 1
	require.True(t, a.qp.Cancel(99))
	s := p.Snapshot().Total
	require.Equal(t, uint64(1), s.Maps)
	require.Equal(t, uint64(1), s.Cancels)
	require.Zero(t, s.Requests())
	require.Equal(t, byte(1), b.mr.Bytes()[0])
}

func TestResetSetsEveryCounterToZero(t *testing.T) {
	p, a, b := pair(t)
	_, err := b.qp.PostRecv([]driver.RecvRequest{{ID: 1}})
	require.NoError(t, err)
	a.post(driver.WorkRequest{Op: driver.OpSend, Flags: driver.Signaled | driver.Fence | driver.Solicited | driver.Inline})
	require.NoError(t, a.cq.Wait(testwatch.Context(t)))
	a.next()
	a.qp.Cancel(1)
	_, err = a.qp.Map(testwatch.Context(t), b.mr.Remote(0), 8, driver.RemoteRead)
	require.NoError(t, err)
	require.NotZero(t, p.Snapshot().Total)
	p.Reset()
	s := p.Snapshot()
	require.Zero(t, s.Total)
	require.Zero(t, s.Polls+s.EmptyPolls+s.Waits)
	for name, counts := range s.QPs {
		require.Zero(t, counts, name)
	}
}

func TestSinkPrintsEachRequestAsOneLine(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	p, a, b := pair(t, trace.WithSink(func(e trace.Event) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, e.String())
	}))
	require.Equal(t, "loop", p.Name())
	lines = nil // of connecting
	_, err := b.qp.PostRecv([]driver.RecvRequest{{ID: 3, Local: []driver.Segment{b.at(0, 16)}}})
	require.NoError(t, err)
	bad := b.mr.Remote(0)
	bad.Addr, bad.RKey = 0x40, driver.Key{Hi: 1}
	a.post(driver.WorkRequest{ID: 1, Op: driver.OpSend, Flags: driver.Inline | driver.Signaled, Local: []driver.Segment{a.at(0, 8)}},
		driver.WorkRequest{ID: 2, Op: driver.OpWrite, Local: []driver.Segment{a.at(0, 8)}, Remote: bad})
	a.next()
	b.next()
	a.next()
	require.Len(t, lines, 6)
	require.Equal(t, []string{
		"1/qp2 recv id=3 16 B",
		"0/qp1 post id=1 SEND 8 B signaled inline",
		"0/qp1 post id=2 WRITE 8 B at 0x40",
		"0/qp1 complete id=1 success SEND 0 B",
		"1/qp2 complete id=3 success RECV 8 B",
	}, lines[:5])
	require.Contains(t, lines[5], "0/qp1 complete id=2 remote access error: ")
}

func TestEventsOfEveryKindAreReadable(t *testing.T) {
	q := trace.QP{Context: 2, Num: 9}
	for want, e := range map[string]trace.Event{
		"2/qp9 modify to RTS":                   {Kind: trace.Modified, QP: q, State: driver.StateRTS},
		"2/qp9 refuse: queue full":              {Kind: trace.Refused, QP: q, Err: driver.ErrQueueFull},
		"2/qp9 map 8 B at 0x10":                 {Kind: trace.Mapped, QP: q, Bytes: 8, Addr: 16},
		"2/qp9 cancel id=5":                     {Kind: trace.Canceled, QP: q, ID: 5},
		"2/qp9 post id=1 READ 4 B at 0x8 fence": {Kind: trace.Posted, QP: q, ID: 1, Op: driver.OpRead, Bytes: 4, Addr: 8, Flags: driver.Fence},
		"2/qp9 ?":                               {Kind: 77, QP: q},
	} {
		require.Equal(t, want, e.String())
	}
}

func TestCapabilitiesPassThroughExactly(t *testing.T) {
	for name, c := range map[string]struct {
		plan          faulty.Plan
		maps, cancels bool
	}{
		"both":    {faulty.Plan{}, true, true},
		"maps":    {faulty.Plan{HideCanceler: true}, true, false},
		"cancels": {faulty.Plan{HideMapper: true}, false, true},
		"neither": {faulty.Plan{HideMapper: true, HideCanceler: true}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, err := trace.New(faulty.New(loop.New(), c.plan)).Open(testwatch.Context(t), "loop0", driver.Options{})
			require.NoError(t, err)
			defer ctx.Close()
			cq, err := ctx.CreateCQ(testwatch.Context(t), 1)
			require.NoError(t, err)
			qp, err := ctx.CreateQP(testwatch.Context(t), driver.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1})
			require.NoError(t, err)
			_, maps := qp.(driver.Mapper)
			_, cancels := qp.(driver.Canceler)
			require.Equal(t, c.maps, maps)
			require.Equal(t, c.cancels, cancels)
		})
	}
}

func TestForeignCompletionQueueIsRefused(t *testing.T) {
	wire := loop.New()
	plain, err := wire.Open(testwatch.Context(t), "loop0", driver.Options{})
	require.NoError(t, err)
	defer plain.Close()
	cq, err := plain.CreateCQ(testwatch.Context(t), 1)
	require.NoError(t, err)
	ctx, err := trace.New(wire).Open(testwatch.Context(t), "loop0", driver.Options{})
	require.NoError(t, err)
	defer ctx.Close()
	_, err = ctx.CreateQP(testwatch.Context(t), driver.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 1, RecvDepth: 1})
	require.ErrorIs(t, err, driver.ErrInvalid)
	_, err = trace.New(wire).Open(testwatch.Context(t), "no such device", driver.Options{})
	require.ErrorIs(t, err, driver.ErrInvalid)
}

func TestCountingAllocatesNothing(t *testing.T) {
	_, a, b := pair(t)
	wrs := []driver.WorkRequest{
		{Op: driver.OpWrite, Flags: driver.Inline, Local: []driver.Segment{a.at(0, 8)}, Remote: b.mr.Remote(0)},
		{Op: driver.OpRead, Flags: driver.Signaled, Local: []driver.Segment{a.at(0, 8)}, Remote: b.mr.Remote(0)},
	}
	var wc [4]driver.Completion
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		_, _ = a.qp.PostSend(wrs)
		_, _ = a.cq.Poll(wc[:])
	}))
}
