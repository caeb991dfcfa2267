//go:build linux

package tcp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func shortWrite8(at driver.RemoteAddr) driver.WorkRequest {
	return driver.WorkRequest{ID: 7, Op: driver.OpWrite, Flags: driver.Inline, Local: segment([]byte{1, 2, 3, 4, 5, 6, 7, 8}), Remote: at}
}

// The peer refuses the fourth WRITE of a run.
func TestRefusedWriteOfARunFailsItselfAndAllLaterOnes(t *testing.T) {
	a, b, qa, _ := pair(t, 128)
	settled(t, a, b, qa)
	resume := a.stall()
	for i := range uint64(10) {
		at := b.at(8 * i)
		if i == 3 {
			at.RKey.Lo++
		}
		post(t, qa, shortWrite8(at))
	}
	require.Equal(t, 1, qa.sq.Len(), "one place for the run")
	resume()
	require.Equal(t, driver.Completion{ID: 7, Op: driver.OpWrite, Status: driver.RemoteAccess, QP: qa.num}, a.next())
	for range 6 {
		require.Equal(t, driver.Completion{ID: 7, Op: driver.OpWrite, Status: driver.Flushed, QP: qa.num}, a.next())
	}
	require.True(t, a.cq.(*completionQueue).Empty())
	require.EqualValues(t, 8, b.mem[23])
	require.Equal(t, make([]byte, 104), b.mem[24:])
}

func TestCancelEndsEachWriteOfARun(t *testing.T) {
	n := newNode(t, 64, driver.AllAccess)
	q := n.newQP(4)
	n.attach(q)
	for range 3 {
		post(t, q, shortWrite8(n.at(0)))
	}
	q.Cancel(7)
	post(t, q, shortWrite8(n.at(0))) // belongs to another run
	for range 3 {
		require.Equal(t, driver.Canceled, n.next().Status)
	}
	require.True(t, n.cq.(*completionQueue).Empty())
	_, err := q.PostSend([]driver.WorkRequest{shortWrite8(n.at(0))})
	require.ErrorIs(t, err, driver.ErrQueueFull, "canceled requests that have left keep their room")
}

// A READ without its data is ahead of the run, of which the peer has acknowledged the front.
func TestCancelEndsOnlyWritesOfARunThatAreNotAcknowledged(t *testing.T) {
	n := newNode(t, 64, driver.AllAccess)
	q := n.newQP(8)
	n.attach(q)
	post(t, q, driver.WorkRequest{ID: 1, Op: driver.OpRead, Flags: driver.Signaled, Local: segment(make([]byte, 8)), Remote: n.at(0)})
	for range 5 {
		post(t, q, shortWrite8(n.at(0)))
	}
	n.hears(q, func(*link) {
		require.NoError(t, q.applyAck(&frame{seq: 4}))
		q.retire()
	})
	q.Cancel(7)
	for range 2 {
		require.Equal(t, driver.Canceled, n.next().Status)
	}
	require.True(t, n.cq.(*completionQueue).Empty())
}

// An acknowledgement gives back the room of those that it counts.
func TestAcknowledgedWritesOfARunLeaveRoom(t *testing.T) {
	n := newNode(t, 64, driver.AllAccess)
	q := n.newQP(4)
	n.attach(q)
	for range 4 {
		post(t, q, shortWrite8(n.at(0)))
	}
	n.hears(q, func(*link) {
		require.Zero(t, q.sq.Room())
		require.NoError(t, q.applyAck(&frame{seq: 3}))
		q.retire()
		require.Equal(t, 3, q.sq.Room())
		require.NoError(t, q.applyAck(&frame{seq: 4}))
		q.retire()
		require.Equal(t, 4, q.sq.Room())
		require.Zero(t, q.sq.Len())
	})
}

// The first READ leaves at once. Later ones wait until a poll, the ticker or its response sends them.
func TestReadsBehindAReadUnderWayTravelTogether(t *testing.T) {
	n := newNode(t, 64, driver.AllAccess)
	q := n.newQP(8)
	n.attach(q)
	n.ticker.stop()
	dst := make([]byte, 8)
	queued := func() int {
		q.lock()
		defer q.unlock()
		return q.link.out.queued
	}
	post(t, q, driver.WorkRequest{Op: driver.OpRead, Flags: driver.Signaled, Local: segment(dst), Remote: n.at(0)})
	require.Zero(t, queued())
	for i := range 3 {
		post(t, q, driver.WorkRequest{Op: driver.OpRead, Flags: driver.Signaled, Local: segment(dst), Remote: n.at(0)})
		require.Equal(t, (i+1)*headerSizes[kindRead], queued())
	}
	_, err := n.cq.Poll(make([]driver.Completion, 1))
	require.NoError(t, err)
	require.Zero(t, queued())
}
