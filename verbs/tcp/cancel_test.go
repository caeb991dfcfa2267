//go:build linux

package tcp

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// stall keeps n from making progress, as a stopped process would, until the
// function that it returns is called.
func (n *node) stall() (resume func()) {
	n.token.Lock()
	resume = sync.OnceFunc(n.token.Unlock)
	n.t.Cleanup(resume)
	return resume
}

// settled posts a READ on q, as soon as there is room, and waits for it: all earlier
// requests have then ended.
func settled(t *testing.T, a, b *node, qa *qp) {
	t.Helper()
	read := []driver.WorkRequest{{ID: 1 << 40, Op: driver.OpRead, Flags: driver.Signaled, Local: segment(make([]byte, 1)), Remote: b.at(0)}}
	eventually(t, "room for a READ", func() bool {
		n, err := qa.PostSend(read)
		require.True(t, n == 1 || errors.Is(err, driver.ErrQueueFull), "%v", err)
		return n == 1
	})
	for a.success().ID != 1<<40 {
	}
}

func TestCanceledRequestsStopUsingTheirMemory(t *testing.T) {
	const size = 12 << 20 // more than the sockets hold
	for _, op := range []driver.Opcode{driver.OpWrite, driver.OpSend, driver.OpWriteImm} {
		t.Run(op.String(), func(t *testing.T) {
			a, b, qa, qb := pair(t, size)
			settled(t, a, b, qa)
			into := b.mem
			recv := driver.RecvRequest{ID: 7}
			if op == driver.OpSend {
				recv.Local = segment(into)
			}
			_, err := qb.PostRecv([]driver.RecvRequest{recv, {ID: 8, Local: segment(make([]byte, 8))}})
			require.NoError(t, err)
			settled(t, b, a, qb) // a knows the receives now

			resume := b.stall()
			src := bytes.Repeat([]byte{1}, size)
			post(t, qa, driver.WorkRequest{ID: 1, Op: op, Flags: driver.Signaled, Local: segment(src), Remote: b.at(0)},
				driver.WorkRequest{ID: 2, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(src[:100]), Remote: b.at(0)})
			qa.Cancel(1)
			qa.Cancel(2)
			for i := range src {
				src[i] = 0xff
			}
			require.Equal(t, driver.Completion{ID: 1, Op: op, Status: driver.Canceled, QP: qa.num}, a.next())
			require.Equal(t, driver.Completion{ID: 2, Op: driver.OpWrite, Status: driver.Canceled, QP: qa.num}, a.next())
			resume()
			settled(t, a, b, qa)
			require.Equal(t, -1, bytes.IndexByte(into, 0xff), "the source was read after it was given back")
			require.NotEqual(t, -1, bytes.IndexByte(into, 0), "nothing was canceled")

			if op != driver.OpWrite { // the receive was given back as well
				post(t, qa, driver.WorkRequest{ID: 3, Op: driver.OpSend, Flags: driver.Signaled, Local: segment([]byte("tiny"))})
				if op == driver.OpSend {
					require.Equal(t, 4, b.success().Bytes)
				} else {
					require.Equal(t, driver.LocalLength, b.next().Status, "receive 7 has no memory")
				}
			}
		})
	}
}

func TestCanceledReadDoesNotChangeDestination(t *testing.T) {
	const size = 4 << 20
	a, b, qa, _ := pair(t, size)
	settled(t, a, b, qa)
	copy(b.mem, bytes.Repeat([]byte{0xff}, size))
	resume := b.stall()
	dst, old := make([]byte, size), make([]byte, 8)
	post(t, qa, driver.WorkRequest{ID: 1, Op: driver.OpRead, Flags: driver.Signaled, Local: segment(dst), Remote: b.at(0)},
		driver.WorkRequest{ID: 2, Op: driver.OpFetchAdd, Flags: driver.Signaled, Local: segment(old), Remote: b.at(0)})
	qa.Cancel(1)
	qa.Cancel(2)
	require.Equal(t, driver.Canceled, a.next().Status)
	require.Equal(t, driver.Canceled, a.next().Status)
	resume()
	settled(t, a, b, qa)
	require.Equal(t, make([]byte, size), dst)
	require.Equal(t, make([]byte, 8), old)
}

// TestReadCanceledInReceptionStops cancels between two parts of one frame.
func TestReadCanceledInReceptionStops(t *testing.T) {
	n := newNode(t, 8, 0)
	q := n.newQP(4)
	dst := make([]byte, 100)
	n.attach(q)
	q.lock()
	q.sq.Push(&driver.WorkRequest{ID: 1, Op: driver.OpRead, Local: segment(dst)})
	q.fill()
	q.unlock()
	b := make([]byte, headerSizes[kindData])
	(&frame{kind: kindData, flags: flagLast, length: 100}).encode(b)
	n.hears(q, func(l *link) { require.NoError(t, l.process(append(b, bytes.Repeat([]byte{1}, 60)...))) })

	q.Cancel(1)
	clear(dst)
	q.lock()
	require.NoError(t, q.link.process(bytes.Repeat([]byte{2}, 40)))
	q.retire()
	require.Zero(t, q.sq.Len())
	q.unlock()
	require.Equal(t, make([]byte, 100), dst)
	require.Equal(t, driver.Canceled, n.next().Status)
}

func TestRequestsBehindCanceledOneComplete(t *testing.T) {
	a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
	qa, qb := a.newQP(4), b.newQP(4)
	connect(t, qa, qb.Address()) // the peer connects later
	for i := range uint64(3) {
		post(t, qa, driver.WorkRequest{ID: i, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment([]byte{byte(i + 1)}), Remote: b.at(i)})
	}
	qa.Cancel(1)
	qa.Cancel(99) // no request has this id
	require.Equal(t, driver.Completion{ID: 1, Op: driver.OpWrite, Status: driver.Canceled, QP: qa.num}, a.next())
	connect(t, qb, qa.Address())
	require.EqualValues(t, 0, a.success().ID)
	require.EqualValues(t, 2, a.success().ID)
	require.Equal(t, []byte{1, 0, 3}, b.mem[:3])
}

// A flushed write has ended, though its frames may still leave.
func TestFlushedWritesStopUsingTheirMemory(t *testing.T) {
	const size = 12 << 20
	a, b, qa, qb := pair(t, size)
	settled(t, a, b, qa)
	settled(t, b, a, qb)
	resume, refuse := b.stall(), a.stall()
	nowhere := driver.RemoteAddr{Addr: 4096, RKey: driver.Key{Hi: 1, Lo: 3}}
	post(t, qb, driver.WorkRequest{ID: 5, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 100)), Remote: nowhere})
	src := bytes.Repeat([]byte{1}, size)
	post(t, qa, driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(src), Remote: b.at(0)})
	refuse() // with frames of the write under way
	require.Equal(t, driver.Flushed, a.next().Status, "by the refusal of the other end's")
	for i := range src {
		src[i] = 0xff
	}
	resume()
	require.NotEqual(t, driver.Success, b.next().Status)
	b.token.Lock()
	defer b.token.Unlock()
	require.Equal(t, -1, bytes.IndexByte(b.mem, 0xff), "the source was read after it was given back")
}

// TestCancelKeepsPayloadOfSecondQueuePair cancels a READ during the response to a READ
// of another queue pair on the same connection.
func TestCancelKeepsPayloadOfSecondQueuePair(t *testing.T) {
	n := newNode(t, 8, 0)
	q, other := n.newQP(4), n.newQP(4)
	n.attach(q)
	dst := make([]byte, 100)
	n.hears(q, func(l *link) {
		other.mu.Store(&l.path.mu)
		l.path.bind(other)
		other.state = driver.StateRTS
		l.established(l.newStream(other))
		for _, of := range []*qp{q, other} {
			of.sq.Push(&driver.WorkRequest{ID: 1, Op: driver.OpRead, Local: segment(dst)})
			of.fill()
		}
		b := make([]byte, headerSizes[kindData])
		(&frame{kind: kindData, stream: other.stream.id, flags: flagLast, length: 100}).encode(b)
		require.NoError(t, l.process(append(b, bytes.Repeat([]byte{1}, 60)...)))
	})
	q.Cancel(1)
	n.hears(other, func(l *link) { require.NoError(t, l.process(bytes.Repeat([]byte{1}, 40))) })
	require.Equal(t, bytes.Repeat([]byte{1}, 100), dst)
}
