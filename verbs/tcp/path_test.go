//go:build linux

package tcp

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// TestQueuePairThatGivesUpIsNotOpenedLater resets a queue pair that waits for its
// peer's response.
func TestQueuePairThatGivesUpIsNotOpenedLater(t *testing.T) {
	for range 20 {
		a, b, qa, qb := pair(t, 64)
		settled(t, a, b, qa)
		ra, rb := a.newQP(8), b.newQP(8)
		connect(t, ra, rb.Address())
		if a.id < b.id { // else it waits and sends nothing
			eventually(t, "the peer to hear of it", func() bool { return len(rb.waiting()) == 1 })
		}
		require.NoError(t, ra.Modify(t.Context(), driver.StateReset, driver.Attr{}))
		works(t, a, b, qa)
		works(t, b, a, qb)
		require.NoError(t, ra.Modify(t.Context(), driver.StateInit, driver.Attr{}))
		connect(t, ra, rb.Address())
		connect(t, rb, ra.Address())
		works(t, a, b, ra)
		require.NoError(t, qa.Close())
		works(t, b, a, rb)
	}
}

// dialing returns two nodes; the first one dials.
func dialing(t *testing.T) (d, a *node) {
	d, a = newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
	if d.id > a.id {
		d, a = a, d
	}
	return d, a
}

// dialed returns two such nodes with a connection that further queue pairs may use.
func dialed(t *testing.T) (d, a *node, qd, qa *qp) {
	d, a = dialing(t)
	qd, qa = d.newQP(8), a.newQP(8)
	connect(t, qd, qa.Address())
	connect(t, qa, qd.Address())
	settled(t, d, a, qd)
	return d, a, qd, qa
}

func TestQueuePairsThatConnectAtOnceShare(t *testing.T) {
	for i := range 50 {
		a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
		qa, qb, ra, rb := a.newQP(8), b.newQP(8), a.newQP(8), b.newQP(8)
		var both sync.WaitGroup
		both.Go(func() {
			connect(t, qa, qb.Address())
			connect(t, ra, rb.Address())
		})
		both.Go(func() {
			ends := [][2]*qp{{qb, qa}, {rb, ra}}
			connect(t, ends[i%2][0], ends[i%2][1].Address())
			connect(t, ends[1-i%2][0], ends[1-i%2][1].Address())
		})
		both.Wait()
		works(t, a, b, qa)
		works(t, b, a, qb)
		works(t, a, b, ra)
		works(t, b, a, rb)
		require.Same(t, qa.connection(), ra.connection())
		require.NoError(t, a.Close())
		require.NoError(t, b.Close())
	}
}

// TestStreamOpensDuringRefusal opens a stream of a connection that the peer has just
// refused a request on.
func TestStreamOpensDuringRefusal(t *testing.T) {
	d, a, qd, qa := dialed(t)
	rd, ra := d.newQP(8), a.newQP(8)
	connect(t, ra, rd.Address())
	address, wrong := ra.Address(), a.at(0)
	wrong.RKey.Lo++

	resume := d.stall()
	post(t, qd, driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 16)), Remote: wrong})
	eventually(t, "the refusal", func() bool { return qa.currentState() == driver.StateErr })
	rd.lock()
	require.NoError(t, rd.connect(address))
	rd.start(0)
	require.NotNil(t, rd.stream)
	rd.unlock()
	resume()
	require.Equal(t, driver.RemoteAccess, d.next().Status)
	works(t, d, a, rd)
	require.Equal(t, driver.StateRTS, ra.currentState())
}

// TestBothEndsLeaveStreamAfterRefusals makes each end refuse a request before it learns
// that its own was refused. Both leave the stream.
func TestBothEndsLeaveStreamAfterRefusals(t *testing.T) {
	a, b, wrong, other := duo(t, 64)
	resume := [2]func(){a.stall(), b.stall()}
	for i, n := range []*node{a, b} {
		to := []*node{b, a}[i].at(0)
		to.RKey.Lo++
		post(t, wrong[i], driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 16)), Remote: to})
		n.flushWaiting()
	}
	resume[0]()
	resume[1]()
	for _, n := range []*node{a, b} {
		require.NotEqual(t, driver.Success, n.next().Status)
		require.Equal(t, driver.EventQPFatal, n.event().Kind)
	}
	goesOn(t, a, b, other)
	for _, q := range wrong {
		eventually(t, "the stream to be left", func() bool { return q.connection() == nil })
	}
}

// TestQueuePairUnknownToPeerDelaysNoOther dials first for a queue pair that the peer's
// device does not have.
func TestQueuePairUnknownToPeerDelaysNoOther(t *testing.T) {
	for range 10 {
		d, v := dialing(t)
		claimed := address{qp: 99, token: token{7}, device: v.id, endpoints: v.endpoints}
		mine, rd, rv := d.newQP(4), d.newQP(4), v.newQP(4)
		connect(t, mine, claimed.encode())
		connect(t, rd, rv.Address())
		connect(t, rv, rd.Address())
		works(t, d, v, rd)
		works(t, v, d, rv)
		require.Equal(t, driver.StateRTS, mine.currentState(), "it goes on until its time is over")
	}
}

// TestQueuePairGetsAnotherConnectionWithoutNumbers uses up the numbers of a
// connection's streams. The next queue pair gets another connection.
func TestQueuePairGetsAnotherConnectionWithoutNumbers(t *testing.T) {
	d, a, qd, qa := dialed(t)
	l := qd.connection()
	for _, q := range []*qp{qd, qa} {
		q.lock()
		q.link.next = lastStream - 1
		q.unlock()
	}
	rd, ra := d.newQP(4), a.newQP(4)
	connect(t, rd, ra.Address())
	connect(t, ra, rd.Address())
	works(t, d, a, rd)
	require.Same(t, l, rd.connection())
	require.NoError(t, rd.Close())
	rd, ra = d.newQP(4), a.newQP(4)
	connect(t, rd, ra.Address())
	connect(t, ra, rd.Address())
	works(t, d, a, rd)
	require.NotSame(t, l, rd.connection())
	works(t, d, a, qd)
}

// TestFalseDeviceNumberDelaysNoQueuePair makes a peer claim to be on the device of
// another one.
func TestFalseDeviceNumberDelaysNoQueuePair(t *testing.T) {
	d, v := dialing(t)
	liar := newNode(t, 64, driver.AllAccess)
	liar.id = v.id
	q, mine := liar.newQP(4), d.newQP(4)
	connect(t, mine, q.Address())
	connect(t, q, mine.Address())
	settled(t, d, liar, mine)
	defer liar.stall()() // it sends no more responses
	rd, rv := d.newQP(4), v.newQP(4)
	connect(t, rd, rv.Address())
	connect(t, rv, rd.Address())
	works(t, d, v, rd)
}

func TestQueuePairOpensAgainAfterLostConnection(t *testing.T) {
	d, a, _, qa := dialed(t)
	rd, ra := d.newQP(8), a.newQP(8)
	connect(t, rd, ra.Address())
	eventually(t, "the peer to hear of it", func() bool { return len(ra.waiting()) == 1 })
	openings := 1
	a.hears(qa, func(l *link) {
		l.lost(errSilent)
		openings = len(ra.openings) // before the peer dials again
	})
	require.Zero(t, openings)
	connect(t, ra, rd.Address())
	works(t, d, a, rd)
}
