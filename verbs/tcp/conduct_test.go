//go:build linux

package tcp

import (
	"bytes"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
)

func TestCombinedWriteLeavesWithoutAnotherCall(t *testing.T) {
	require.GreaterOrEqual(t, CombineDelay, 100*time.Microsecond)
	require.LessOrEqual(t, CombineDelay, time.Millisecond)
	a, b, qa, _ := pair(t, 64)
	settled(t, a, b, qa)
	for i := range uint64(50) {
		start := time.Now()
		word := alignedBytes(8)
		atomics.PutUint(word, i+1)
		post(t, qa, driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Inline, Local: segment(word), Remote: b.at(0)})
		eventually(t, "the write", func() bool { return atomics.Word64(b.mem).Load() == i+1 })
		if i == 0 {
			t.Logf("seen after %v", time.Since(start))
		}
	}
}

func TestSmallWritesTravelTogether(t *testing.T) {
	a, b, qa, _ := pair(t, 1024)
	settled(t, a, b, qa)
	before := segmentsOut(t, qa)
	for i := range uint64(100) {
		post(t, qa, driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Inline, Local: segment([]byte{byte(i)}), Remote: b.at(i)})
	}
	settled(t, a, b, qa)
	require.EqualValues(t, 99, b.mem[99])
	require.Less(t, segmentsOut(t, qa)-before, uint32(50), "100 writes in as many packets")
}

func segmentsOut(t *testing.T, q *qp) uint32 {
	q.lock()
	defer q.unlock()
	info, err := unix.GetsockoptTCPInfo(q.link.fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	require.NoError(t, err)
	return info.Data_segs_out
}

func TestSlowPeerSlowsOnlyItsQueuePair(t *testing.T) {
	a, slow, fast := newNode(t, 64, driver.AllAccess), newNode(t, 8<<20, driver.AllAccess), newNode(t, 64, driver.AllAccess)
	qs, qf := a.newQP(128), a.newQP(128)
	ps, pf := slow.newQP(128), fast.newQP(128)
	connect(t, qs, ps.Address())
	connect(t, ps, qs.Address())
	connect(t, qf, pf.Address())
	connect(t, pf, qf.Address())
	settled(t, a, slow, qs)

	resume := slow.stall()
	src, inline := make([]byte, 8<<20), make([]byte, maxInline)
	for i := range uint64(32) { // far more than sockets and buffers hold
		post(t, qs, driver.WorkRequest{ID: i, Op: driver.OpWrite, Local: segment(src), Remote: slow.at(0)},
			driver.WorkRequest{ID: i, Op: driver.OpWrite, Flags: driver.Inline, Local: segment(inline), Remote: slow.at(0)})
	}
	for range 100 {
		works(t, a, fast, qf)
	}
	resume()
	settled(t, a, slow, qs)
}

func TestFullSendQueueRefusesWithAStalledPeer(t *testing.T) {
	a, b, qa, _ := pair(t, 64)
	settled(t, a, b, qa)
	resume := b.stall()
	wr := []driver.WorkRequest{{Op: driver.OpWrite, Flags: driver.Inline, Local: segment(make([]byte, 8)), Remote: b.at(0)}}
	taken := 0
	for {
		n, err := qa.PostSend(wr)
		if taken += n; err != nil {
			require.ErrorIs(t, err, driver.ErrQueueFull)
			break
		}
	}
	require.Equal(t, qa.sq.Depth(), taken)
	resume()
	settled(t, a, b, qa)
}

func TestTakenReceivesAreCreditsThoughLaterOnesAreRefused(t *testing.T) {
	a, b, qa, qb := pair(t, 64)
	settled(t, a, b, qa)
	n, err := qb.PostRecv(make([]driver.RecvRequest, qb.rq.Depth()+1))
	require.ErrorIs(t, err, driver.ErrQueueFull)
	require.Equal(t, qb.rq.Depth(), n)
	post(t, qa, driver.WorkRequest{ID: 1, Op: driver.OpSend, Flags: driver.Signaled})
	require.EqualValues(t, 1, a.success().ID)
}

func TestManyConnectionsNeedTwoGoroutines(t *testing.T) {
	const pairs = 200
	a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
	before := goruntime.NumGoroutine()
	var qas []*qp
	for range pairs {
		qa, qb := a.newQP(2), b.newQP(2)
		connect(t, qa, qb.Address())
		connect(t, qb, qa.Address())
		qas = append(qas, qa)
	}
	for i, q := range qas {
		post(t, q, driver.WorkRequest{ID: uint64(i), Op: driver.OpFetchAdd, Operand: 1, Flags: driver.Signaled, Local: segment(make([]byte, 8)), Remote: b.at(0)})
	}
	for range qas {
		a.success()
	}
	require.EqualValues(t, pairs, atomics.Word64(b.mem).Load())
	eventually(t, "goroutines of handshakes to end", func() bool { return goruntime.NumGoroutine() <= before+2 })
}

func TestIdleDeviceUsesNoProcessor(t *testing.T) {
	a, b, qa, _ := pair(t, 64)
	settled(t, a, b, qa)
	for range 10 * spinning { // leaves the ticker running for a moment
		_, err := a.cq.Poll(make([]driver.Completion, 1))
		require.NoError(t, err)
	}
	eventually(t, "the ticker to stop", func() bool { return !a.ticker.running.Load() && a.server.armed.Load() })
	a.token.Lock()
	polls := a.server.polls
	a.token.Unlock()
	time.Sleep(20 * time.Millisecond) // gives a mistake the time to show
	a.token.Lock()
	defer a.token.Unlock()
	require.Equal(t, polls, a.server.polls)
	require.False(t, a.ticker.running.Load())
}

func TestClosedRegionEndsReadUnderWay(t *testing.T) {
	const size = 16 << 20
	a, b, qa, qb := pair(t, size)
	settled(t, a, b, qa)
	copy(b.mem, bytes.Repeat([]byte{1}, size))
	dst := make([]byte, size)
	resume := a.stall() // a reads nothing: the response fills the sockets
	qa.lock()
	qa.sq.Push(&driver.WorkRequest{ID: 1, Op: driver.OpRead, Flags: driver.Signaled, Local: segment(dst), Remote: b.at(0)})
	qa.flush()
	qa.unlock()
	eventually(t, "the response to be stuck", func() bool {
		qb.lock()
		defer qb.unlock()
		return qb.link.out.blocked
	})
	require.NoError(t, b.mr.Close())
	for i := range b.mem {
		b.mem[i] = 0xff
	}
	resume()
	require.Equal(t, driver.RemoteAccess, a.next().Status)
	require.Equal(t, -1, bytes.IndexByte(dst, 0xff), "the region was read after it was closed")
}

func TestPeerIsFoundAtItsSecondEndpoint(t *testing.T) {
	a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
	dead := addrPorts("127.0.0.1:1")
	a.endpoints, b.endpoints = append(dead, a.endpoints...), append(dead, b.endpoints...)
	qa, qb := a.newQP(4), b.newQP(4)
	connect(t, qa, qb.Address())
	connect(t, qb, qa.Address())
	works(t, a, b, qa)
}

func TestPeerThatClosesBeforeItConnects(t *testing.T) {
	for i := range 4 { // whichever side dials
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			a, b := newNode(t, 64, driver.AllAccess), newNode(t, 64, driver.AllAccess)
			qa, qb := a.newQP(4), b.newQP(4)
			connect(t, qa, qb.Address())
			post(t, qa, driver.WorkRequest{ID: 3, Op: driver.OpWrite})
			require.NoError(t, b.Close())
			wc := a.next()
			require.Equal(t, driver.RetryExceeded, wc.Status)
			require.ErrorIs(t, wc.Err, driver.ErrLost)
			require.Equal(t, driver.EventQPFatal, a.event().Kind)
		})
	}
}

func TestPeerThatNeverConnectsTimesOut(t *testing.T) {
	cfg := Config{Listen: "127.0.0.1", PeerTimeout: 200 * time.Millisecond}
	for range 4 {
		a, b := newNodeWith(t, cfg, 64, 0), newNodeWith(t, cfg, 64, 0)
		qa, qb := a.newQP(4), b.newQP(4)
		connect(t, qa, qb.Address())
		event := a.event()
		require.Equal(t, driver.EventQPFatal, event.Kind)
		require.NotErrorIs(t, event.Err, driver.ErrLost, "nothing that stood was lost")
		require.Equal(t, driver.StateErr, qa.currentState())
	}
}

func TestAllInterfacesAreServedByDefault(t *testing.T) {
	cfg := Config{}
	a, b := newNodeWith(t, cfg, 64, driver.AllAccess), newNodeWith(t, cfg, 64, driver.AllAccess)
	qa, qb := a.newQP(4), b.newQP(4)
	connect(t, qa, qb.Address())
	connect(t, qb, qa.Address())
	works(t, a, b, qa)
}

// TestPostRingsTheBellForARefusal closes a region that the peer reads. The next post of
// the queue pair sends the refusal, and so ends the receive that a goroutine waits for.
func TestPostRingsTheBellForARefusal(t *testing.T) {
	n := newNodeWith(t, Config{Listen: "127.0.0.1", PeerTimeout: 24 * time.Hour}, 64, driver.AllAccess) // its watchdog never rings
	q := n.newQP(4)
	n.attach(q)
	read := make([]byte, headerSizes[kindRead])
	(&frame{kind: kindRead, flags: flagLast, addr: n.mr.Addr(), key: n.mr.RKey(), length: 8}).encode(read)
	n.hears(q, func(l *link) {
		require.NoError(t, q.postRecv(&driver.RecvRequest{ID: 3, Local: segment(make([]byte, 8))}))
		require.NoError(t, l.process(read))
	})
	require.NoError(t, n.mr.Close())

	ctx, cancel := testwatch.With(t.Context())
	defer cancel()
	woken := make(chan error, 1)
	go func() { woken <- n.bell.Wait(ctx, n.cq.(*completionQueue).Ready) }()
	eventually(t, "the waiter to sleep", n.bell.Waiting)
	post(t, q, driver.WorkRequest{ID: 4, Op: driver.OpWrite, Local: segment(make([]byte, 8)), Remote: n.at(0)})
	require.NoError(t, <-woken)
	require.NoError(t, ctx.Err(), "the end of the test woke the waiter")
	require.Equal(t, driver.StateErr, q.currentState())
}
