package faulty

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
)

func TestMain(m *testing.M) { testwatch.Main(m) }

// ages is a hold that is longer than any test.
const ages = time.Hour

// end is one end of a connection.
type end struct {
	t      testing.TB
	bell   *wait.Bell
	ctx    *verbs.Context
	pd     *verbs.PD
	cq     *verbs.CQ // of both queues
	qp     *verbs.QP
	mr     *verbs.MR
	events chan driver.AsyncEvent
}

const (
	memory = 4096
	depth  = 16
)

func open(t testing.TB, p driver.Provider) *end {
	t.Helper()
	e := &end{t: t, bell: wait.NewLocal(), events: make(chan driver.AsyncEvent, 16)}
	var err error
	e.ctx, err = verbs.Open(testwatch.Context(t), p, "", driver.Options{Bell: e.bell, OnEvent: func(ev driver.AsyncEvent) { e.events <- ev }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.ctx.Close()) })
	e.pd, err = e.ctx.AllocPD()
	require.NoError(t, err)
	e.cq, err = e.ctx.CreateCQ(testwatch.Context(t), 4*depth)
	require.NoError(t, err)
	e.mr, err = e.pd.RegMR(testwatch.Context(t), driver.Memory{Bytes: make([]byte, memory)}, driver.AllAccess)
	require.NoError(t, err)
	e.qp = e.newQP()
	return e
}

func (e *end) newQP() *verbs.QP {
	e.t.Helper()
	qp, err := e.pd.CreateQP(testwatch.Context(e.t), verbs.QPConfig{SendCQ: e.cq, RecvCQ: e.cq, SendDepth: depth, RecvDepth: depth, MaxInline: 64})
	require.NoError(e.t, err)
	return qp
}

func connect(t testing.TB, a, b *verbs.QP) {
	t.Helper()
	require.NoError(t, a.Connect(testwatch.Context(t), b.Address(), 0))
	require.NoError(t, b.Connect(testwatch.Context(t), a.Address(), 0))
}

// pair connects an end with the plan's faults to one that has none.
func pair(t testing.TB, plan Plan) (a, b *end) {
	t.Helper()
	wire := loop.New()
	a, b = open(t, New(wire, plan)), open(t, wire)
	connect(t, a.qp, b.qp)
	return a, b
}

func (e *end) at(offset, n int) []driver.Segment {
	e.t.Helper()
	s, err := e.mr.Segment(offset, n)
	require.NoError(e.t, err)
	return []driver.Segment{s}
}

func (e *end) get(offset int) uint64 { return binary.NativeEndian.Uint64(e.mr.Bytes()[offset:]) }

func (e *end) set(offset int, v uint64) { binary.NativeEndian.PutUint64(e.mr.Bytes()[offset:], v) }

// write returns a signaled WRITE of eight bytes at the same offset on both
// sides.
func (e *end) write(id uint64, peer *end, offset int) driver.WorkRequest {
	return driver.WorkRequest{ID: id, Op: driver.OpWrite, Flags: driver.Signaled, Local: e.at(offset, 8), Remote: peer.mr.Remote(offset)}
}

func (e *end) read(id uint64, peer *end, to, from int) driver.WorkRequest {
	return driver.WorkRequest{ID: id, Op: driver.OpRead, Flags: driver.Signaled, Local: e.at(to, 8), Remote: peer.mr.Remote(from)}
}

// send returns a signaled SEND of eight bytes.
func (e *end) send(id uint64, offset int) driver.WorkRequest {
	return driver.WorkRequest{ID: id, Op: driver.OpSend, Flags: driver.Signaled, Local: e.at(offset, 8)}
}

// offer posts a receive of eight bytes.
func (e *end) offer(id uint64, offset int) {
	e.t.Helper()
	_, err := e.qp.PostRecv([]driver.RecvRequest{{ID: id, Local: e.at(offset, 8)}})
	require.NoError(e.t, err)
}

func (e *end) post(wrs ...driver.WorkRequest) {
	e.t.Helper()
	n, err := e.qp.PostSend(wrs)
	require.NoError(e.t, err)
	require.Equal(e.t, len(wrs), n)
}

// next waits for one completion. It polls often enough to end the holds of
// plans that wait for polls only.
func (e *end) next() driver.Completion {
	e.t.Helper()
	var wc [1]driver.Completion
	for {
		for range 1000 {
			n, err := e.cq.Poll(wc[:])
			require.NoError(e.t, err)
			if n == 1 {
				return wc[0]
			}
		}
		require.NoError(e.t, e.cq.Wait(testwatch.Context(e.t)))
	}
}

// expect requires the completions of consecutive ids from first on, in order,
// with these statuses.
func (e *end) expect(first uint64, statuses ...driver.Status) {
	e.t.Helper()
	for i, want := range statuses {
		wc := e.next()
		require.Equal(e.t, first+uint64(i), wc.ID)
		require.Equal(e.t, want, wc.Status, "request %d: %v", wc.ID, wc.Err)
	}
}

// nothing requires that so many polls return no completion.
func (e *end) nothing(polls int) {
	e.t.Helper()
	var wc [1]driver.Completion
	for range polls {
		n, err := e.cq.Poll(wc[:])
		require.NoError(e.t, err)
		require.Zero(e.t, n, "%+v", wc[0])
	}
}

func (e *end) event() driver.AsyncEvent {
	e.t.Helper()
	select {
	case ev := <-e.events:
		return ev
	case <-testwatch.Context(e.t).Done():
		require.Fail(e.t, "no event came")
		return driver.AsyncEvent{}
	}
}
