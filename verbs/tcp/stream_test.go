//go:build linux

package tcp

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// duo connects two nodes by two queue pairs; the second joins the first one's
// connection.
func duo(t *testing.T, size int) (a, b *node, first, second [2]*qp) {
	t.Helper()
	a, b, qa, qb := pair(t, size)
	settled(t, a, b, qa)
	ra, rb := a.newQP(128), b.newQP(128)
	connect(t, ra, rb.Address())
	connect(t, rb, ra.Address())
	settled(t, b, a, rb)
	settled(t, a, b, ra)
	return a, b, [2]*qp{qa, qb}, [2]*qp{ra, rb}
}

// eachOfTwo runs a test of the first and of the second of two queue pairs that share a
// connection.
func eachOfTwo(t *testing.T, size int, test func(t *testing.T, a, b *node, one, other [2]*qp)) {
	t.Run("first", func(t *testing.T) {
		a, b, first, second := duo(t, size)
		test(t, a, b, first, second)
	})
	t.Run("second", func(t *testing.T) {
		a, b, first, second := duo(t, size)
		test(t, a, b, second, first)
	})
}

// goesOn requires that a queue pair is not disturbed.
func goesOn(t *testing.T, a, b *node, q [2]*qp) {
	t.Helper()
	for range 10 {
		works(t, a, b, q[0])
		works(t, b, a, q[1])
	}
}

func (n *node) connections() (count int) {
	n.token.Lock()
	defer n.token.Unlock()
	for _, l := range n.links {
		if l != nil && l.phase == phaseStream {
			count++
		}
	}
	return count
}

func TestThirdQueuePairGetsAnotherConnection(t *testing.T) {
	for range 20 { // whichever device dials
		a, b, first, second := duo(t, 64)
		for i := range first {
			require.Same(t, first[i].connection(), second[i].connection())
		}
		third, fourth := a.newQP(4), b.newQP(4)
		connect(t, fourth, third.Address())
		connect(t, third, fourth.Address())
		settled(t, a, b, third)
		require.NotSame(t, first[0].connection(), third.connection())
		require.Equal(t, 2, a.connections())
		require.Equal(t, 2, b.connections())
	}
}

// TestManyQueuePairsShareConnection connects 20 pairs at once. Every third leaves and
// connects again.
func TestManyQueuePairsShareConnection(t *testing.T) {
	const pairs = 20
	cfg := Config{Listen: "127.0.0.1", Streams: pairs}
	a, b := newNodeWith(t, cfg, 64, driver.AllAccess), newNodeWith(t, cfg, 64, driver.AllAccess)
	var all [][2]*qp
	for range pairs {
		all = append(all, [2]*qp{a.newQP(4), b.newQP(4)})
	}
	for round := range 3 {
		for i, q := range all {
			if round == 0 || i%3 == 0 {
				connect(t, q[(i+round)%2], q[1-(i+round)%2].Address())
			}
		}
		for i, q := range all {
			if round == 0 || i%3 == 0 {
				connect(t, q[1-(i+round)%2], q[(i+round)%2].Address())
			}
		}
		for _, q := range all {
			works(t, a, b, q[0])
			works(t, b, a, q[1])
			require.Same(t, all[0][0].connection(), q[0].connection())
		}
		require.Equal(t, 1, a.connections())
		for i, q := range all {
			if i%3 == 0 {
				renew(t, q[0])
				renew(t, q[1])
			}
		}
	}
}

// TestQueuePairsConnectInAnyOrder connects both ends of two pairs in every order,
// without a pause.
func TestQueuePairsConnectInAnyOrder(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
		qa, qb, ra, rb := a.newQP(8), b.newQP(8), a.newQP(8), b.newQP(8)
		ends := [][2]*qp{{qa, qb}, {qb, qa}, {ra, rb}, {rb, ra}}
		rnd.Shuffle(len(ends), func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
		for _, e := range ends {
			connect(t, e[0], e[1].Address())
		}
		for _, q := range []*qp{qa, ra} {
			works(t, a, b, q)
		}
		for _, q := range []*qp{qb, rb} {
			works(t, b, a, q)
		}
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
}

// TestSecondQueuePairDoesNotDependOnTheFirst never connects the first one's peer.
func TestSecondQueuePairDoesNotDependOnTheFirst(t *testing.T) {
	for range 4 { // whichever device dials
		a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
		qa, qb, ra, rb := a.newQP(8), b.newQP(8), a.newQP(8), b.newQP(8)
		connect(t, qa, qb.Address())
		connect(t, ra, rb.Address())
		connect(t, rb, ra.Address())
		works(t, a, b, ra)
		connect(t, qb, qa.Address())
		works(t, a, b, qa)
	}
}

func TestTrafficOfTwoQueuePairsBothWays(t *testing.T) {
	const most = 200 << 10
	a, b, first, second := duo(t, 4*most)
	rnd := rand.New(rand.NewPCG(1, 2))
	type way struct {
		from, to *node
		q        *qp
		area     uint64
		want     []byte
	}
	ways := []way{{a, b, first[0], 0, nil}, {a, b, second[0], 2 * most, nil}, {b, a, first[1], 0, nil}, {b, a, second[1], 2 * most, nil}}
	lengths := []int{1, 8, 500, briefRead, directMin, longFrame - 1, longFrame, scratchSize, most}
	for i := range ways {
		ways[i].want = make([]byte, 2*most)
	}
	for round := range 100 {
		for range 20 {
			w := &ways[rnd.IntN(len(ways))]
			n := lengths[rnd.IntN(len(lengths))]
			at := rnd.IntN(len(w.want) - n)
			src := bytes.Repeat([]byte{byte(rnd.Uint32())}, n)
			copy(w.want[at:], src)
			post(t, w.q, driver.WorkRequest{Op: driver.OpWrite, Local: segment(src), Remote: w.to.at(w.area + uint64(at))})
		}
		for _, w := range ways {
			settled(t, w.from, w.to, w.q)
			require.True(t, bytes.Equal(w.want, w.to.mem[w.area:][:2*most]), "round %d", round)
		}
	}
}

func TestRefusalEndsItsQueuePairAlone(t *testing.T) {
	eachOfTwo(t, 64, func(t *testing.T, a, b *node, wrong, other [2]*qp) {
		to := b.at(0)
		to.RKey.Lo++
		post(t, wrong[0], driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 16)), Remote: to},
			driver.WorkRequest{ID: 2, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 64)), Remote: b.at(0)})
		require.Equal(t, driver.RemoteAccess, a.next().Status)
		require.Equal(t, driver.Flushed, a.next().Status)
		require.Equal(t, driver.EventQPFatal, b.event().Kind)
		goesOn(t, a, b, other)
		require.Empty(t, b.events)
		require.Equal(t, make([]byte, 53), b.mem[11:])
		eventually(t, "the stream to be left", func() bool { return wrong[0].connection() == nil })
		require.NotNil(t, other[0].connection())
	})
}

// TestRefusalDuringLongWrite refuses a WRITE at its first frame, long before the last is
// framed.
func TestRefusalDuringLongWrite(t *testing.T) {
	eachOfTwo(t, 64, func(t *testing.T, a, b *node, wrong, other [2]*qp) {
		narrow(t, wrong[0])
		to := b.at(0)
		to.RKey.Lo++
		post(t, wrong[0], driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 64<<20)), Remote: to})
		require.Equal(t, driver.RemoteAccess, a.next().Status)
		goesOn(t, a, b, other)
	})
}

// TestClosedQueuePairKeepsSharedConnection closes one end in the middle of a payload.
func TestClosedQueuePairKeepsSharedConnection(t *testing.T) {
	const size = 8 << 20
	a, b, first, second := duo(t, size)
	for i := range b.mem {
		b.mem[i] = 0x55
	}
	resume := b.stall()
	long := bytes.Repeat([]byte{0xaa}, size/2)
	for range 4 { // more than the sockets hold
		post(t, first[0], driver.WorkRequest{ID: 1, Op: driver.OpWrite, Local: segment(long), Remote: b.at(0)})
	}
	src := bytes.Repeat([]byte{7}, size/4)
	post(t, second[0], driver.WorkRequest{ID: 2, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(src), Remote: b.at(size / 2)})
	require.NoError(t, first[0].Close())
	clear(long) // the memory is the caller's again
	resume()
	require.EqualValues(t, 2, a.success().ID)
	require.True(t, bytes.Equal(src, b.mem[size/2:][:len(src)]))
	require.Equal(t, -1, bytes.IndexByte(b.mem[:size/2], 0), "what was the caller's again has left")
	e := b.event()
	require.Equal(t, driver.EventQPFatal, e.Kind)
	require.Equal(t, first[1].num, e.QP)
	for range 10 {
		works(t, a, b, second[0])
		works(t, b, a, second[1])
	}
	again, peer := a.newQP(8), b.newQP(8)
	connect(t, again, peer.Address())
	connect(t, peer, again.Address())
	works(t, a, b, again)
}

func TestLastQueuePairClosesTheConnection(t *testing.T) {
	a, b, first, second := duo(t, 64)
	require.NoError(t, first[0].Close())
	require.Equal(t, first[1].num, b.event().QP)
	require.NoError(t, second[1].Close())
	require.Equal(t, second[0].num, a.event().QP)
	for _, n := range []*node{a, b} {
		eventually(t, "the connection to be closed", func() bool { return n.connections() == 0 })
	}
}

func TestLostConnectionEndsBoth(t *testing.T) {
	a, b, _, _ := duo(t, 64)
	require.NoError(t, b.Close())
	for range 2 {
		e := a.event()
		require.Equal(t, driver.EventQPFatal, e.Kind)
		require.ErrorIs(t, e.Err, driver.ErrLost)
	}
	eventually(t, "the connection to be closed", func() bool { return a.connections() == 0 })
}

func TestQueuePairMovesFromConnectionToConnection(t *testing.T) {
	a, b, first, second := duo(t, 64)
	for i := range 50 {
		q, p := first[0], first[1]
		if i%2 == 1 {
			q, p = second[0], second[1]
		}
		renew(t, q)
		renew(t, p)
		if i%3 == 0 {
			q, p = p, q
		}
		connect(t, q, p.Address())
		connect(t, p, q.Address())
		for _, both := range [][2]*qp{first, second} {
			works(t, a, b, both[0])
			works(t, b, a, both[1])
		}
	}
	require.LessOrEqual(t, a.connections(), 2)
}

// TestQueuePairsTakeTurns makes one queue pair send all the time through a socket that
// takes less than a frame. The requests and responses of its neighbor must leave in
// between.
func TestQueuePairsTakeTurns(t *testing.T) {
	const size, bulk = 16 << 20, 40
	for _, swapped := range []bool{false, true} {
		a, b, busy, quick := duo(t, size)
		if swapped {
			busy, quick = quick, busy
		}
		narrow(t, busy[0])
		resume := b.stall() // until all requests are posted
		src := make([]byte, size)
		for i := range uint64(bulk) {
			post(t, busy[0], driver.WorkRequest{ID: 100 + i, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(src), Remote: b.at(0)})
		}
		post(t, quick[0], driver.WorkRequest{ID: 7, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(src[:4096]), Remote: b.at(0)})
		post(t, quick[1], driver.WorkRequest{ID: 8, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(src[:8]), Remote: a.at(0)})
		resume()
		require.EqualValues(t, 8, b.success().ID)
		before := 0
		for a.success().ID != 7 {
			before++
		}
		require.Less(t, before, bulk/2, "of those that were posted before")
		for ; before < bulk; before++ {
			a.success()
		}
	}
}

// narrow gives a connection small buffers.
func narrow(t *testing.T, q *qp) {
	t.Helper()
	require.NoError(t, unix.SetsockoptInt(q.connection().fd, unix.SOL_SOCKET, unix.SO_SNDBUF, 256<<10))
}

// TestCloseInReception closes the target of a long payload in reception.
func TestCloseInReception(t *testing.T) {
	const size = 64 << 20
	eachOfTwo(t, size, func(t *testing.T, a, b *node, reading, other [2]*qp) {
		copy(a.mem, bytes.Repeat([]byte{0xaa}, size))
		dst := make([]byte, size)
		post(t, reading[1], driver.WorkRequest{ID: 1, Op: driver.OpRead, Flags: driver.Signaled, Local: segment(dst), Remote: a.at(0)})
		eventually(t, "something of it", func() bool {
			reading[1].lock()
			defer reading[1].unlock()
			return bytes.IndexByte(dst[:4096], 0xaa) >= 0
		})
		require.NoError(t, reading[1].Close())
		clear(dst)
		goesOn(t, a, b, other)
		require.Equal(t, -1, bytes.IndexByte(dst, 0xaa), "written to after it was the caller's again")
	})
}

// TestNextConnectionStartsFresh resets both ends in the middle of a request of several
// frames.
func TestNextConnectionStartsFresh(t *testing.T) {
	const size = 12 << 20
	a, b, first, other := duo(t, size)
	resume := b.stall()
	post(t, first[0], driver.WorkRequest{ID: 1, Op: driver.OpWrite, Local: segment(make([]byte, size)), Remote: b.at(0)})
	require.NoError(t, first[0].Modify(t.Context(), driver.StateReset, driver.Attr{}))
	resume()
	b.event()
	renew(t, first[0])
	renew(t, first[1])
	connect(t, first[0], first[1].Address())
	connect(t, first[1], first[0].Address())
	_, err := first[1].PostRecv([]driver.RecvRequest{{ID: 9, Local: segment(make([]byte, 100))}})
	require.NoError(t, err)
	post(t, first[0], driver.WorkRequest{ID: 2, Op: driver.OpSend, Flags: driver.Signaled, Local: segment(make([]byte, 50))})
	require.Equal(t, 50, b.success().Bytes)
	require.EqualValues(t, 2, a.success().ID)
	works(t, a, b, other[0])
}

// renew resets a queue pair so that it may connect again.
func renew(t *testing.T, q *qp) {
	t.Helper()
	require.NoError(t, q.Modify(t.Context(), driver.StateReset, driver.Attr{}))
	require.NoError(t, q.Modify(t.Context(), driver.StateInit, driver.Attr{}))
}
