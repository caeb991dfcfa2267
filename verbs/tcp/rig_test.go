//go:build linux

package tcp

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A node is a device with one rank's objects on it.
type node struct {
	*device
	t      testing.TB
	cq     driver.CQ
	mem    []byte
	mr     driver.MR
	events chan driver.AsyncEvent
}

func newNode(t testing.TB, size int, access driver.Access) *node {
	t.Helper()
	return newNodeWith(t, Config{Listen: "127.0.0.1", PeerTimeout: 10 * time.Second}, size, access)
}

func newNodeWith(t testing.TB, cfg Config, size int, access driver.Access) *node {
	t.Helper()
	n := &node{t: t, events: make(chan driver.AsyncEvent, 16)}
	opts := driver.Options{Bell: wait.NewLocal(), OnEvent: func(e driver.AsyncEvent) {
		select {
		case n.events <- e:
		default:
		}
	}}
	ctx, err := New(cfg).Open(t.Context(), "", opts)
	require.NoError(t, err)
	n.device = ctx.(*device)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	n.cq, err = n.CreateCQ(t.Context(), 4096)
	require.NoError(t, err)
	n.mem = alignedBytes(size)
	n.mr, err = n.RegMR(t.Context(), driver.Memory{Bytes: n.mem}, access)
	require.NoError(t, err)
	return n
}

// alignedBytes are aligned to 8, as small byte slices need not be.
func alignedBytes(n int) []byte {
	b := make([]byte, n+8)
	return b[(8-position(b)%8)%8:][:n]
}

func (n *node) at(off uint64) driver.RemoteAddr {
	return driver.RemoteAddr{Addr: n.mr.Addr() + off, RKey: n.mr.RKey()}
}

func (n *node) newQP(depth int) *qp {
	n.t.Helper()
	q, err := n.CreateQP(n.t.Context(), driver.QPConfig{
		SendCQ: n.cq, RecvCQ: n.cq, SendDepth: depth, RecvDepth: depth, MaxSegments: 4, MaxInline: maxInline,
	})
	require.NoError(n.t, err)
	require.NoError(n.t, q.Modify(n.t.Context(), driver.StateInit, driver.Attr{}))
	return q.(*qp)
}

func connect(t testing.TB, q *qp, peer []byte) {
	t.Helper()
	require.NoError(t, q.Modify(t.Context(), driver.StateRTR, driver.Attr{Peer: peer}))
	require.NoError(t, q.Modify(t.Context(), driver.StateRTS, driver.Attr{}))
}

// pair connects two nodes by one queue pair.
func pair(t testing.TB, size int) (a, b *node, qa, qb *qp) {
	t.Helper()
	return pairWith(t, Config{}, size)
}

// pairWith is pair with a configuration of both devices.
func pairWith(t testing.TB, cfg Config, size int) (a, b *node, qa, qb *qp) {
	t.Helper()
	cfg.Listen, cfg.PeerTimeout = "127.0.0.1", 10*time.Second
	a, b = newNodeWith(t, cfg, size, driver.AllAccess), newNodeWith(t, cfg, size, driver.AllAccess)
	qa, qb = a.newQP(128), b.newQP(128)
	connect(t, qa, qb.Address())
	connect(t, qb, qa.Address())
	return a, b, qa, qb
}

// attach connects q with a socket that is never read or written.
func (n *node) attach(q *qp) {
	n.t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, socketType, 0)
	require.NoError(n.t, err)
	n.t.Cleanup(func() { unix.Close(fds[1]) }) //nolint:errcheck // nothing was sent
	n.token.Lock()
	defer n.token.Unlock()
	p := &path{dev: n.device}
	l, err := n.addLink(fds[0], p, phaseOpen, unix.EPOLLIN)
	require.NoError(n.t, err)
	q.lock()
	defer q.unlock()
	p.bind(q)
	q.state = driver.StateRTS
	l.established(l.newStream(q))
}

// hears makes q's connection process frames from f, as if the peer had sent them.
func (n *node) hears(q *qp, f func(*link)) {
	n.token.Lock()
	defer n.leave()
	q.lock()
	defer q.unlock()
	f(q.link)
}

// next waits for one completion.
func (n *node) next() driver.Completion {
	n.t.Helper()
	ctx, cancel := testwatch.With(context.Background())
	defer cancel()
	var wc [1]driver.Completion
	for {
		k, err := n.cq.Poll(wc[:])
		require.NoError(n.t, err)
		if k == 1 {
			return wc[0]
		}
		require.NoError(n.t, n.cq.Wait(ctx), "no completion")
	}
}

// success waits for one completion without error.
func (n *node) success() driver.Completion {
	n.t.Helper()
	wc := n.next()
	require.Equal(n.t, driver.Success, wc.Status, "request %d: %v", wc.ID, wc.Err)
	return wc
}

func post(t testing.TB, q *qp, wrs ...driver.WorkRequest) {
	t.Helper()
	n, err := q.PostSend(wrs)
	require.NoError(t, err)
	require.Equal(t, len(wrs), n)
}

func segment(b []byte) []driver.Segment { return []driver.Segment{{Mem: b}} }

// eventually waits for cond, which no completion announces.
func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, testwatch.Patience(), time.Millisecond, what)
}

func netipPort(a netip.Addr, port uint16) netip.AddrPort { return netip.AddrPortFrom(a, port) }

func addrPorts(all ...string) (list []netip.AddrPort) {
	for _, a := range all {
		list = append(list, netip.MustParseAddrPort(a))
	}
	return list
}
