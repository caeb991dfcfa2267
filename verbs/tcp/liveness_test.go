//go:build linux

package tcp

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
)

// vanish makes the kernel discard all input of the connection, as if the host had
// vanished.
func vanish(t *testing.T, q *qp) {
	t.Helper()
	drop := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: 0}}
	q.lock()
	defer q.unlock()
	err := unix.SetsockoptSockFprog(q.link.fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &drop[0]})
	require.NoError(t, err)
}

func impatientPair(t *testing.T, timeout time.Duration) (a, b *node, qa, qb *qp) {
	a, b, qa, qb = pair(t, 8<<20)
	settled(t, a, b, qa)
	settled(t, b, a, qb)
	for _, q := range []*qp{qa, qb} {
		require.NoError(t, q.Modify(t.Context(), driver.StateRTS, driver.Attr{Timeout: timeout}))
	}
	return a, b, qa, qb
}

func TestVanishedHostEndsOutstandingRequests(t *testing.T) {
	t.Parallel()
	a, b, qa, qb := impatientPair(t, 500*time.Millisecond)
	vanish(t, qb)
	start := time.Now()
	post(t, qa, driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 8)), Remote: b.at(0)},
		driver.WorkRequest{ID: 2, Op: driver.OpRead, Local: segment(make([]byte, 8)), Remote: b.at(0)})
	wc := a.next()
	require.Equal(t, driver.RetryExceeded, wc.Status)
	require.ErrorIs(t, wc.Err, driver.ErrLost)
	require.Equal(t, driver.Flushed, a.next().Status)
	require.Equal(t, driver.EventQPFatal, a.event().Kind)
	t.Logf("found after %v", time.Since(start))
}

// TestSilenceResetsTheConnection cuts one direction. The end that hears nothing gives up.
// The other end has much more patience, and learns of it by a reset.
func TestSilenceResetsTheConnection(t *testing.T) {
	t.Parallel()
	a, b, qa, qb := impatientPair(t, 500*time.Millisecond)
	require.NoError(t, qb.Modify(t.Context(), driver.StateRTS, driver.Attr{Timeout: time.Hour}))
	vanish(t, qa)
	for range 4 { // more than the sockets hold
		post(t, qa, driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 8<<20)), Remote: b.at(0)})
	}
	require.Equal(t, driver.RetryExceeded, a.next().Status)
	require.ErrorIs(t, b.event().Err, driver.ErrLost)
	require.Equal(t, driver.StateErr, qb.currentState())
}

// TestSocketIsTunedOnceForEachTimeout changes an option behind the device's back. A further stream of the connection
// leaves it, and a shorter timeout sets it.
func TestSocketIsTunedOnceForEachTimeout(t *testing.T) {
	const timeout = 10 * time.Second
	a, b, qa, _ := impatientPair(t, timeout)
	linkOf := func(q *qp) *link {
		q.lock()
		defer q.unlock()
		return q.link
	}
	fd := linkOf(qa).fd
	idle := func() int {
		seconds, err := unix.GetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
		require.NoError(t, err)
		return seconds
	}
	require.Equal(t, 5, idle())
	require.NoError(t, unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 7))
	further, other := a.newQP(8), b.newQP(8)
	connect(t, further, other.Address())
	connect(t, other, further.Address())
	settled(t, a, b, further)
	require.Same(t, linkOf(qa), linkOf(further))
	require.Equal(t, 7, idle())
	require.NoError(t, qa.Modify(t.Context(), driver.StateRTS, driver.Attr{Timeout: timeout / 2}))
	require.Equal(t, 2, idle())
}

// TestFailedTuneIsTriedAgain has the first call fail for want of a socket.
func TestFailedTuneIsTriedAgain(t *testing.T) {
	l := &link{fd: -1}
	require.ErrorIs(t, l.tune(10*time.Second), unix.EBADF)
	var err error
	l.fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(l.fd)
	require.NoError(t, l.tune(10*time.Second))
	idle, err := unix.GetsockoptInt(l.fd, unix.IPPROTO_TCP, unix.TCP_KEEPIDLE)
	require.NoError(t, err)
	require.Equal(t, 5, idle)
}

func TestStoppedPeerIsNoVanishedHost(t *testing.T) {
	t.Parallel()
	a, b, qa, _ := impatientPair(t, 200*time.Millisecond)
	resume := b.stall()
	src := make([]byte, 8<<20)
	for range 4 { // shuts the window
		post(t, qa, driver.WorkRequest{Op: driver.OpWrite, Local: segment(src), Remote: b.at(0)})
	}
	time.Sleep(leastSilence * 3 / 2) // long enough to break the connection, if a stopped peer counted as vanished
	require.Empty(t, a.events)
	require.Equal(t, driver.StateRTS, qa.currentState())
	resume()
	settled(t, a, b, qa)
}

func TestSilenceCountsFromTheLastSign(t *testing.T) {
	const timeout = 2 * leastSilence
	var s silence
	start := time.Now()
	owed := func(heard time.Duration) *unix.TCPInfo {
		return &unix.TCPInfo{Unacked: 1, Last_ack_recv: uint32(heard.Milliseconds())}
	}
	acked := &unix.TCPInfo{Unacked: 9, Last_data_sent: 5000, Last_ack_recv: 5000}
	require.False(t, s.over(owed(time.Hour), start, timeout), "long idle, then something was sent")
	require.False(t, s.over(owed(time.Hour), start.Add(timeout-1), timeout))
	require.True(t, s.over(owed(time.Hour), start.Add(timeout), timeout))
	require.False(t, s.over(owed(timeout/2), start.Add(timeout), timeout), "heard in between")
	require.False(t, s.over(acked, start.Add(time.Hour), timeout), "the last repetition was acknowledged")
	require.False(t, s.over(&unix.TCPInfo{Probes: 1}, start.Add(time.Hour), timeout), "the silence starts anew")
	require.False(t, s.over(&unix.TCPInfo{}, start.Add(2*time.Hour), timeout), "nothing is owed")
}
