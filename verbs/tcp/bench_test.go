//go:build linux

package tcp

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// BenchmarkPingPong measures an 8-byte message and its reply between programs that
// poll. It uses raw sockets as the floor, and inline WRITEs that both sides poll in
// memory. Compare ns/op of one run only.
func BenchmarkPingPong(b *testing.B) {
	b.Run("raw", rawPingPong)
	b.Run("write", writePingPong)
}

func rawPingPong(b *testing.B) {
	ends := rawPair(b)
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		var msg [8]byte
		for {
			if receiveBusy(ends[1], msg[:]) != nil {
				return
			}
			send(ends[1], msg[:])
		}
	}()
	var msg [8]byte
	for b.Loop() {
		send(ends[0], msg[:])
		if err := receiveBusy(ends[0], msg[:]); err != nil {
			b.Fatal(err)
		}
	}
	unix.Shutdown(ends[0], unix.SHUT_WR) //nolint:errcheck // the benchmark is over
	<-stop
}

func receiveBusy(fd int, b []byte) error {
	for {
		switch n, errno := receive(fd, b); {
		case n == 0 && errno == 0:
			return errPeerClosed
		case errno == 0:
			return nil
		case errno != unix.EAGAIN:
			return errno
		}
	}
}

// rawPair returns the two ends of a loopback connection.
func rawPair(b *testing.B) (ends [2]int) {
	at := newNode(b, 8, 0)
	fd, port, err := listen(at.endpoints[0].Addr())
	if err != nil {
		b.Fatal(err)
	}
	defer unix.Close(fd) //nolint:errcheck // only the connection is needed
	ends[0], err = dial(netipPort(at.endpoints[0].Addr(), port), unpaced)
	if err != nil {
		b.Fatal(err)
	}
	for ends[1] = -1; ends[1] < 0; {
		ends[1], _, _ = unix.Accept4(fd, unix.SOCK_NONBLOCK)
	}
	for _, end := range ends {
		if err := tune(end, DefaultPeerTimeout); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { unix.Close(end) }) //nolint:errcheck // the benchmark is over
	}
	return ends
}

func writePingPong(b *testing.B) {
	x, y, qx, qy := pair(b, 64)
	done := make(chan struct{})
	var stop atomic.Bool
	go func() {
		defer close(done)
		side := newPlayer(y, qy, x)
		for i := uint64(1); side.await(i, &stop); i++ {
			side.serve(i)
		}
	}()
	side := newPlayer(x, qx, y)
	i := uint64(0)
	for b.Loop() {
		i++
		side.serve(i)
		side.await(i, &stop)
	}
	stop.Store(true)
	<-done
}

// player is one side of a game of ping-pong.
type player struct {
	n   *node
	q   *qp
	out []byte
	wr  []driver.WorkRequest
	wc  []driver.Completion
	in  *atomic.Uint64
}

func newPlayer(n *node, q *qp, peer *node) *player {
	p := &player{n: n, q: q, out: alignedBytes(8), wc: make([]driver.Completion, 1), in: atomics.Word64(n.mem)}
	p.wr = []driver.WorkRequest{{Op: driver.OpWrite, Flags: driver.Inline, Local: segment(p.out), Remote: peer.at(0)}}
	return p
}

func (p *player) serve(v uint64) {
	atomics.PutUint(p.out, v)
	if _, err := p.q.PostSend(p.wr); err != nil {
		panic(err)
	}
}

func (p *player) await(v uint64, stop *atomic.Bool) bool {
	for p.in.Load() != v {
		if _, err := p.n.cq.Poll(p.wc); err != nil || stop.Load() {
			return false
		}
	}
	return true
}

// BenchmarkBandwidth keeps a few large requests in flight, beside a stream of
// raw sends of the same size.
func BenchmarkBandwidth(b *testing.B) {
	for _, size := range []int{4 << 10, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("raw/%d", size), func(b *testing.B) { rawBandwidth(b, size) })
		b.Run(fmt.Sprintf("write/%d", size), func(b *testing.B) { bandwidth(b, Config{}, driver.OpWrite, size) })
		b.Run(fmt.Sprintf("read/%d", size), func(b *testing.B) { bandwidth(b, Config{}, driver.OpRead, size) })
		b.Run(fmt.Sprintf("tls-write/%d", size), func(b *testing.B) { bandwidth(b, Config{TLS: keysOf(b, 1)}, driver.OpWrite, size) })
	}
}

func rawBandwidth(b *testing.B, size int) {
	ends := rawPair(b)
	total := make(chan int)
	go func() {
		buf, got := make([]byte, 256<<10), 0
		for {
			n, errno := receive(ends[1], buf)
			if n > 0 {
				got += n
			} else if errno != unix.EAGAIN {
				total <- got
				return
			}
		}
	}()
	buf := make([]byte, size)
	b.SetBytes(int64(size))
	for b.Loop() {
		for rest := buf; len(rest) > 0; {
			if n, errno := send(ends[0], rest); errno == 0 {
				rest = rest[n:]
			}
		}
	}
	unix.Shutdown(ends[0], unix.SHUT_WR) //nolint:errcheck // the benchmark is over
	<-total
}

func bandwidth(b *testing.B, cfg Config, op driver.Opcode, size int) {
	x, y, qx, _ := pairWith(b, cfg, size)
	const window = 8
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		wc := make([]driver.Completion, 4)
		for {
			select {
			case <-stop:
				return
			default:
				y.cq.Poll(wc) //nolint:errcheck // only to make progress
			}
		}
	}()
	wrs := []driver.WorkRequest{{Op: op, Flags: driver.Signaled, Local: segment(make([]byte, size)), Remote: y.at(0)}}
	wc := make([]driver.Completion, window)
	b.SetBytes(int64(size))
	inFlight := 0
	for b.Loop() {
		for inFlight == window {
			n, _ := x.cq.Poll(wc)
			inFlight -= n
		}
		if _, err := qx.PostSend(wrs); err != nil {
			b.Fatal(err)
		}
		inFlight++
	}
	for inFlight > 0 {
		n, _ := x.cq.Poll(wc)
		inFlight -= n
	}
	close(stop)
	<-done
}

// BenchmarkSmallBesideBulk measures a write of 8 bytes with its completion on one queue
// pair. Further queue pairs of the same two devices keep eight writes of 1 MiB each in
// flight.
func BenchmarkSmallBesideBulk(b *testing.B) {
	for _, bulk := range []int{0, 1, 2, 3} {
		for _, streams := range []int{1, 2, 4} {
			b.Run(fmt.Sprintf("bulk=%d/streams=%d", bulk, streams), func(b *testing.B) { smallBesideBulk(b, bulk, streams) })
		}
	}
}

func smallBesideBulk(b *testing.B, bulk, streams int) {
	const size, window = 1 << 20, 8
	cfg := Config{Listen: "127.0.0.1", PeerTimeout: DefaultPeerTimeout, Streams: streams}
	x, y := newNodeWith(b, cfg, 8, driver.AllAccess), newNodeWith(b, cfg, size, driver.AllAccess)
	var qps []*qp
	for range bulk + 1 {
		q, p := x.newQP(8), y.newQP(8)
		connect(b, q, p.Address())
		connect(b, p, q.Address())
		post(b, q, driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, 8)), Remote: y.at(0)})
		x.success()
		qps = append(qps, q)
	}
	long := []driver.WorkRequest{{Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(make([]byte, size)), Remote: y.at(0)}}
	small := []driver.WorkRequest{{Op: driver.OpWrite, Flags: driver.Signaled | driver.Inline, Local: segment(make([]byte, 8)), Remote: y.at(0)}}
	wc := make([]driver.Completion, 16)
	inFlight, written, took := make([]int, bulk), int64(0), []time.Duration(nil)
	wait := func(q *qp) {
		for seen := q == nil; ; {
			n, err := x.cq.Poll(wc)
			if err != nil {
				b.Fatal(err)
			}
			for _, c := range wc[:n] {
				if q != nil && c.QP == q.num {
					seen = true
					continue
				}
				inFlight[c.ID]--
				written += size
			}
			if seen {
				return
			}
		}
	}
	for b.Loop() {
		for i := range bulk {
			for ; inFlight[i] < window; inFlight[i]++ {
				long[0].ID = uint64(i)
				post(b, qps[i], long...)
			}
		}
		start := time.Now()
		post(b, qps[bulk], small...)
		wait(qps[bulk])
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "median-us")
	b.ReportMetric(float64(took[len(took)*9/10].Nanoseconds())/1e3, "p90-us")
	b.ReportMetric(float64(written)/1e6/b.Elapsed().Seconds(), "bulk-MB/s")
	for i := range bulk {
		for inFlight[i] > 0 {
			wait(nil)
		}
	}
}
