//go:build ibverbs

package ibv

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// impatient breaks the connection to a silent peer after a fraction of a
// second.
var impatient = Config{PeerTimeout: 300 * time.Millisecond}

// end is one end of a connection, without the checks of package verbs.
type end struct {
	t      *testing.T
	dev    *device
	bell   *wait.Bell
	events chan driver.AsyncEvent
	cq     *completionQueue
	qp     *qp
	mr     driver.MR
	mem    []byte
}

func newEnd(t *testing.T, cfg Config) *end {
	t.Helper()
	p := New(cfg)
	infos, err := p.Devices(t.Context())
	require.NoError(t, err)
	if len(infos) == 0 && os.Getenv("GOPGAS_IBV_REQUIRED") != "1" {
		t.Skip("no RDMA device has an active port")
	}
	e := &end{t: t, bell: wait.NewLocal(), events: make(chan driver.AsyncEvent, 64), mem: make([]byte, 4096)}
	dev, err := p.Open(t.Context(), "", driver.Options{Bell: e.bell, OnEvent: func(ev driver.AsyncEvent) { e.events <- ev }})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	e.dev = dev.(*device)
	e.create()
	return e
}

// newNeighbor returns an end on the same device, with a queue pair, a completion queue and
// memory of its own.
func newNeighbor(of *end) *end {
	of.t.Helper()
	e := &end{t: of.t, dev: of.dev, bell: of.bell, events: of.events, mem: make([]byte, len(of.mem))}
	e.create()
	return e
}

func (e *end) create() {
	e.t.Helper()
	cq, err := e.dev.CreateCQ(e.t.Context(), 256)
	require.NoError(e.t, err)
	e.cq = cq.(*completionQueue)
	pair, err := e.dev.CreateQP(e.t.Context(), driver.QPConfig{SendCQ: cq, RecvCQ: cq, SendDepth: 16, RecvDepth: 16, MaxSegments: 2, MaxInline: e.dev.Info().MaxInline})
	require.NoError(e.t, err)
	e.qp = pair.(*qp)
	e.mr, err = e.dev.RegMR(e.t.Context(), driver.Memory{Bytes: e.mem}, driver.AllAccess)
	require.NoError(e.t, err)
}

// newEnds returns two ends that are connected.
func newEnds(t *testing.T, cfg Config) (a, b *end) {
	t.Helper()
	a, b = newEnd(t, cfg), newEnd(t, cfg)
	connect(t, a, b)
	return a, b
}

func connect(t *testing.T, a, b *end) {
	t.Helper()
	toA, toB := a.qp.Address(), b.qp.Address()
	a.connect(toB)
	b.connect(toA)
}

func (e *end) connect(peer []byte) {
	e.t.Helper()
	require.NoError(e.t, e.qp.Modify(e.t.Context(), driver.StateInit, driver.Attr{}))
	require.NoError(e.t, e.qp.Modify(e.t.Context(), driver.StateRTR, driver.Attr{Peer: peer}))
	require.NoError(e.t, e.qp.Modify(e.t.Context(), driver.StateRTS, driver.Attr{}))
}

func (e *end) modify(to driver.State) {
	e.t.Helper()
	require.NoError(e.t, e.qp.Modify(e.t.Context(), to, driver.Attr{}))
}

func (e *end) segment(n int) []driver.Segment {
	return []driver.Segment{{Mem: e.mem[:n], LKey: e.mr.LKey()}}
}

func (e *end) at(offset uint64) driver.RemoteAddr {
	return driver.RemoteAddr{Addr: e.mr.Addr() + offset, RKey: e.mr.RKey()}
}

func (e *end) post(wrs ...driver.WorkRequest) {
	e.t.Helper()
	n, err := e.qp.PostSend(wrs)
	require.NoError(e.t, err)
	require.Len(e.t, wrs, n)
}

func (e *end) receive(ids ...uint64) {
	e.t.Helper()
	for _, id := range ids {
		n, err := e.qp.PostRecv([]driver.RecvRequest{{ID: id}})
		require.NoError(e.t, err)
		require.Equal(e.t, 1, n)
	}
}

// next waits for a completion.
func (e *end) next() driver.Completion {
	e.t.Helper()
	ctx, cancel := testwatch.With(e.t.Context())
	defer cancel()
	var wc [1]driver.Completion
	for {
		n, err := e.cq.Poll(wc[:])
		require.NoError(e.t, err)
		if n == 1 {
			return wc[0]
		}
		require.NoError(e.t, e.cq.Wait(ctx))
	}
}

// none requires that a poll returns no completion.
func (e *end) none() {
	e.t.Helper()
	var wc [1]driver.Completion
	n, err := e.cq.Poll(wc[:])
	require.NoError(e.t, err)
	require.Zero(e.t, n, "%+v", wc[0])
}

// event waits for an event of a kind and skips other kinds.
func (e *end) event(kind driver.EventKind) driver.AsyncEvent {
	e.t.Helper()
	for late := testwatch.Context(e.t).Done(); ; {
		select {
		case ev := <-e.events:
			if ev.Kind == kind {
				return ev
			}
		case <-late:
			require.Fail(e.t, "the event did not come")
		}
	}
}
