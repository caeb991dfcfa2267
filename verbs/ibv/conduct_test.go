//go:build ibverbs

package ibv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// lose makes a queue pair record a request that the device does not hold.
func lose(q *qp, s *slots, lost slot) {
	q.mu.Lock()
	*s.Push() = lost
	s.owned++
	q.mu.Unlock()
	q.dev.watchOver()
}

func TestRequestsThatTheDeviceLosesEnd(t *testing.T) {
	a, b := newEnds(t, impatient)
	a.post(driver.WorkRequest{ID: 1, Op: driver.OpWrite, Local: a.segment(8), Remote: b.at(0)})
	lose(a.qp, &a.qp.sends, slot{id: 2, op: driver.OpFetchAdd, signaled: true})
	wc := a.next()
	require.Equal(t, uint64(2), wc.ID, "the write before it was not signaled and succeeded")
	require.Equal(t, driver.RetryExceeded, wc.Status)
	require.ErrorIs(t, wc.Err, driver.ErrLost)
	require.ErrorIs(t, a.event(driver.EventQPFatal).Err, driver.ErrLost)

	a.modify(driver.StateReset)
	b.modify(driver.StateReset)
	connect(t, a, b)
	a.post(driver.WorkRequest{ID: 5, Op: driver.OpRead, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(0)})
	require.Equal(t, driver.Success, a.next().Status)
}

func TestRequestsThatDeviceDoesNotFlushAreSeized(t *testing.T) {
	a, _ := newEnds(t, impatient)
	a.receive(1)
	lose(a.qp, &a.qp.recvs, slot{id: 2, op: driver.OpRecv})
	a.modify(driver.StateErr)
	a.receive(3)
	for id := range uint64(3) {
		require.Equal(t, driver.Completion{ID: id + 1, Op: driver.OpRecv, Status: driver.Flushed, QP: a.qp.num}, a.next())
	}
	a.none()
}

// Package verbs would refuse a misaligned atomic.
func TestRequestRefusedByDeviceReturnsErrInvalid(t *testing.T) {
	a, b := newEnds(t, impatient)
	write := driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(0)}
	atomic := driver.WorkRequest{ID: 2, Op: driver.OpFetchAdd, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(4)}
	n, err := a.qp.PostSend([]driver.WorkRequest{write, atomic, write})
	if err == nil {
		t.Skip("this device does not look")
	}
	require.Equal(t, 1, n)
	require.ErrorIs(t, err, driver.ErrInvalid)
	require.Equal(t, driver.Success, a.next().Status)
	a.post(write)
	require.Equal(t, driver.Success, a.next().Status)
}

func TestUnsignaledSuccessesAreNotFlushed(t *testing.T) {
	a, b := newEnds(t, impatient)
	a.post(driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(0)})
	require.Equal(t, uint64(1), a.next().ID)
	for range 5 {
		a.post(driver.WorkRequest{ID: 2, Op: driver.OpWrite, Local: a.segment(8), Remote: b.at(0)})
	}
	b.post(driver.WorkRequest{ID: 9, Op: driver.OpRead, Flags: driver.Signaled, Local: b.segment(8), Remote: a.at(0)})
	require.Equal(t, uint64(9), b.next().ID) // by then a's writes have had the time of a round trip
	a.modify(driver.StateErr)
	a.post(driver.WorkRequest{ID: 3, Op: driver.OpWrite, Local: a.segment(8), Remote: b.at(0)})
	wc := a.next()
	for wc.ID == 2 { // a write that had not ended
		require.Equal(t, driver.Flushed, wc.Status)
		wc = a.next()
	}
	require.Equal(t, uint64(3), wc.ID)
	require.Equal(t, driver.Flushed, wc.Status)
	a.none()
}

// The watchdog must not treat a SEND that waits for a receive as a dead peer.
func TestSendMayWaitForReceiveBeyondPeerTimeout(t *testing.T) {
	a, b := newEnds(t, impatient)
	a.post(driver.WorkRequest{ID: 1, Op: driver.OpSend, Flags: driver.Signaled, Local: a.segment(8)},
		driver.WorkRequest{ID: 2, Op: driver.OpWrite, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(0)})
	time.Sleep(8 * impatient.PeerTimeout) // a receiver that posts late
	n, err := b.qp.PostRecv([]driver.RecvRequest{{ID: 3, Local: b.segment(8)}})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	require.Equal(t, driver.Success, b.next().Status)
	require.Equal(t, driver.Completion{ID: 1, Op: driver.OpSend, QP: a.qp.num}, a.next())
	require.Equal(t, uint64(2), a.next().ID)
}

func TestSendsToClosedPeerEnd(t *testing.T) {
	for name, goes := range map[string]func(b *end){
		"reset":     func(b *end) { b.modify(driver.StateReset) },
		"error":     func(b *end) { b.modify(driver.StateErr) },
		"destroyed": func(b *end) { require.NoError(t, b.qp.Close()) },
		"closed":    func(b *end) { require.NoError(t, b.dev.Close()) },
	} {
		for when, postFirst := range map[string]bool{"after the post": true, "before the post": false} {
			t.Run(name+" "+when, func(t *testing.T) {
				a, b := newEnds(t, impatient)
				send := driver.WorkRequest{ID: 1, Op: driver.OpSend, Flags: driver.Signaled, Local: a.segment(8)}
				if postFirst {
					a.post(send)
					goes(b)
				} else {
					goes(b)
					a.post(send)
				}
				a.receive(2)
				wc := a.next()
				require.Equal(t, uint64(1), wc.ID)
				require.Equal(t, driver.RetryExceeded, wc.Status)
				require.ErrorIs(t, wc.Err, driver.ErrLost)
				require.Equal(t, driver.Flushed, a.next().Status)
				ev := a.event(driver.EventQPFatal)
				require.Equal(t, a.qp.num, ev.QP)
				require.ErrorIs(t, ev.Err, driver.ErrLost)
			})
		}
	}
}

func TestTargetGetsEventWhenQueuePairBreaks(t *testing.T) {
	a, b := newEnds(t, impatient)
	b.receive(1)
	a.post(driver.WorkRequest{ID: 2, Op: driver.OpWrite, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(4096)})
	require.Equal(t, driver.RemoteAccess, a.next().Status)
	require.Equal(t, driver.Flushed, b.next().Status)
	ev := b.event(driver.EventQPFatal)
	require.Equal(t, b.qp.num, ev.QP)
	require.ErrorIs(t, ev.Err, driver.ErrAccess)
}

func TestLateEventDoesNotBreakNextConnection(t *testing.T) {
	a, b := newEnds(t, impatient)
	before := a.qp.incarnation
	a.modify(driver.StateReset)
	b.modify(driver.StateReset)
	connect(t, a, b)
	a.qp.breakDown(before, driver.RetryExceeded, driver.ErrLost)
	require.Empty(t, a.events)
	a.post(driver.WorkRequest{ID: 1, Op: driver.OpRead, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(0)})
	require.Equal(t, driver.Success, a.next().Status)
}

// A queue pair is not drained while its peer does not acknowledge the marker.
func TestClosedPeerEndsTransitionToSQD(t *testing.T) {
	a, b := newEnds(t, impatient)
	require.NoError(t, b.qp.Close())
	a.post(driver.WorkRequest{ID: 1, Op: driver.OpWrite, Local: a.segment(8), Remote: b.at(0)})
	require.ErrorIs(t, a.qp.Modify(t.Context(), driver.StateSQD, driver.Attr{}), driver.ErrState)
	require.Equal(t, driver.RetryExceeded, a.next().Status)
}

func TestErrFlushesRequestsHeldInSQD(t *testing.T) {
	a, b := newEnds(t, impatient)
	a.modify(driver.StateSQD)
	for id := range uint64(3) {
		a.post(driver.WorkRequest{ID: id, Op: driver.OpWrite, Local: a.segment(8), Remote: b.at(0)})
	}
	a.none()
	a.modify(driver.StateErr)
	for id := range uint64(3) {
		require.Equal(t, driver.Completion{ID: id, Status: driver.Flushed, Op: driver.OpWrite, QP: a.qp.num}, a.next())
	}
}

func TestInlineDataHeldInSQDIsCopiedByPost(t *testing.T) {
	a, b := newEnds(t, impatient)
	if a.dev.Info().MaxInline < 8 {
		t.Skip("the device has no inline data")
	}
	a.modify(driver.StateSQD)
	mine := []byte("as it is")
	a.post(driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Inline | driver.Signaled,
		Local: []driver.Segment{{Mem: mine}}, Remote: b.at(0)})
	copy(mine, "as it was")
	a.modify(driver.StateRTS)
	require.Equal(t, driver.Success, a.next().Status)
	a.post(driver.WorkRequest{ID: 2, Op: driver.OpRead, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(0)})
	require.Equal(t, driver.Success, a.next().Status)
	require.Equal(t, "as it is", string(a.mem[:8]))
}

func TestFullQueueInErrAndSQDIsRefused(t *testing.T) {
	for _, state := range []driver.State{driver.StateSQD, driver.StateErr} {
		a, b := newEnds(t, impatient)
		a.modify(state)
		wrs := make([]driver.WorkRequest, 20)
		for i := range wrs {
			wrs[i] = driver.WorkRequest{ID: uint64(i), Op: driver.OpWrite, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(0)}
		}
		n, err := a.qp.PostSend(wrs)
		require.Equal(t, 16, n)
		require.ErrorIs(t, err, driver.ErrQueueFull)
		if state == driver.StateSQD {
			a.modify(driver.StateRTS)
		}
		for id := range uint64(16) {
			require.Equal(t, id, a.next().ID)
		}
		a.post(wrs[16:]...)
	}
}

func TestForeignKeysAreRefused(t *testing.T) {
	a, b := newEnds(t, impatient)
	to := b.at(0)
	to.RKey.Lo |= 1 << 40
	n, err := a.qp.PostSend([]driver.WorkRequest{{Op: driver.OpWrite, Local: a.segment(8), Remote: to}})
	require.Zero(t, n)
	require.ErrorIs(t, err, driver.ErrAccess)
}
