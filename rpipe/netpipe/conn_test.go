package netpipe_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/nettest"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/netpipe"
	"github.com/gopgas/gopgas/runtime"
)

// during runs f while a job of two ranks lasts, with what each sees.
func during(t *testing.T, c testjob.Config, f func(ctx context.Context, a, b *testjob.Rank)) {
	a, b, end := begin(t, c)
	f(a.Job.Context(), a, b)
	end()
}

// begin starts a job of two ranks, which lasts until end.
func begin(t *testing.T, c testjob.Config) (a, b *testjob.Rank, end func()) {
	ranks, done, wait := make(chan *testjob.Rank, 2), make(chan struct{}), make(chan error, 1)
	go func() {
		wait <- c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			ranks <- r
			select {
			case <-done:
			case <-ctx.Done():
			}
		})
	}()
	a, b = <-ranks, <-ranks
	if a.Me > b.Me {
		a, b = b, a
	}
	return a, b, func() {
		close(done)
		require.NoError(t, <-wait)
	}
}

// connected opens both ends of a connection.
func connected(ctx context.Context, t testing.TB, a, b *testjob.Rank, opts ...netpipe.Option) (*netpipe.Conn, *netpipe.Conn) {
	c1, err := netpipe.OpenConn(ctx, a.World, b.Me, opts...)
	require.NoError(t, err)
	c2, err := netpipe.OpenConn(ctx, b.World, a.Me, opts...)
	require.NoError(t, err)
	return c1, c2
}

// A connMode is how connections are opened that package net's test is run with, and the
// pipes of a pool for them.
type connMode struct {
	name string
	conn []netpipe.Option
	pipe []rpipe.Option
}

var connModes = []connMode{
	{"default", nil, []rpipe.Option{rpipe.WithHeap(netpipe.DefaultHeap)}},
	{"tiny", []netpipe.Option{netpipe.WithHeap(2048), netpipe.WithWidth(2)}, []rpipe.Option{rpipe.WithHeap(2048), rpipe.WithWidth(2)}},
	{"pull", []netpipe.Option{netpipe.WithPull()}, []rpipe.Option{rpipe.WithHeap(netpipe.DefaultHeap), rpipe.WithPull()}},
}

func TestConnPassesNettest(t *testing.T) {
	eachConnMode(t, func(t *testing.T, c testjob.Config, mode connMode) {
		// Each of its tests gets a job, and so a watchdog, of its own.
		nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
			a, b, end := begin(t, c)
			c1, c2 := connected(a.Job.Context(), t, a, b, mode.conn...)
			return c1, c2, func() { c1.Close(); c2.Close(); end() }, nil
		})
	})
}

func TestConnOverWindowPassesNettest(t *testing.T) {
	eachConnMode(t, func(t *testing.T, c testjob.Config, mode connMode) {
		nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
			a, b, end := begin(t, c)
			ctx := a.Job.Context()
			opened := make(chan net.Conn, 1)
			go func() { opened <- overPool(ctx, b, mode) }()
			c1 = overPool(ctx, a, mode)
			c2 = <-opened
			return c1, c2, func() { c1.Close(); c2.Close(); end() }, nil
		})
	})
}

// eachConnMode runs each mode on one transport, and when soaking on all.
func eachConnMode(t *testing.T, test func(t *testing.T, c testjob.Config, mode connMode)) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		for i, mode := range connModes {
			if overTCP := i%2 == 0; testjob.Soak() || overTCP == (c.Provider == "tcp") {
				t.Run(mode.name, func(t *testing.T) { test(t, c, mode) })
			}
		}
	})
}

// overPool opens a rank's end of a connection over a pool of its own.
func overPool(ctx context.Context, r *testjob.Rank, mode connMode) net.Conn {
	pool, err := rpipe.OverWindow(ctx, r.World, 2, mode.pipe...)
	r.NoError(err)
	c, err := netpipe.OpenConn(ctx, r.World, 1-r.Me, append(mode.conn[:len(mode.conn):len(mode.conn)], netpipe.WithWindow(pool))...)
	r.NoError(err)
	return c
}

func TestCloseWriteEndsOneDirection(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			conn, err := netpipe.OpenConn(ctx, r.World, 1-r.Me)
			r.NoError(err)
			// More than both pipes hold, so that each end reads while the other writes.
			sent, returned := bytes.Repeat([]byte("request"), 100_000), bytes.Repeat([]byte("response"), 100_000)
			if r.Me == 0 {
				n, err := conn.Write(sent)
				r.NoError(err)
				r.Len(sent, n)
				r.NoError(conn.CloseWrite())
				_, err = conn.Write([]byte{1})
				r.ErrorIs(err, net.ErrClosed)
				got, err := io.ReadAll(conn)
				r.NoError(err)
				r.True(bytes.Equal(returned, got))
			} else {
				got, err := io.ReadAll(conn)
				r.NoError(err)
				r.True(bytes.Equal(sent, got))
				_, err = conn.Write(returned)
				r.NoError(err)
			}
			r.NoError(conn.Close())
			r.NoError(conn.Close())
			_, err = conn.Read(make([]byte, 1))
			r.ErrorIs(err, net.ErrClosed)
			r.ErrorIs(conn.SetDeadline(time.Time{}), net.ErrClosed)
		})
	})
}

// TestCallsOfClosedConnReturnAtOnce closes a full connection whose peer does not read:
// later calls fail at once, though the goodbye waits for room.
func TestCallsOfClosedConnReturnAtOnce(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			conn, err := netpipe.OpenConn(ctx, r.World, 1-r.Me, netpipe.WithWidth(2), netpipe.WithHeap(2048))
			r.NoError(err)
			if r.Me == 0 {
				r.NoError(conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond)))
				for err == nil {
					_, err = conn.Write(make([]byte, 512))
				}
				r.ErrorIs(err, os.ErrDeadlineExceeded)
				r.NoError(conn.Close())
				time.Sleep(10 * time.Millisecond) // the goodbye is under way, as a rule
				for range 100 {
					_, err = conn.Write([]byte{1})
					r.ErrorIs(err, net.ErrClosed)
					_, err = conn.Read(make([]byte, 1))
					r.ErrorIs(err, net.ErrClosed)
				}
			}
			r.NoError(r.World.Barrier(ctx))
			_, err = io.Copy(io.Discard, conn)
			if r.Me == 0 {
				r.ErrorIs(err, net.ErrClosed)
			} else {
				r.NoError(err)
			}
			r.NoError(conn.Close())
		})
	})
}

// TestClosedConnSendsWrittenBytes closes at once, and ends the job's body: the
// peer reads everything all the same.
func TestClosedConnSendsWrittenBytes(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			conn, err := netpipe.OpenConn(ctx, r.World, 1-r.Me, netpipe.WithWidth(1))
			r.NoError(err)
			if r.Me == 0 {
				_, err = conn.Write([]byte("last words"))
				r.NoError(err)
				r.NoError(conn.Close())
				return
			}
			time.Sleep(5 * time.Millisecond) // the peer has closed, as a rule
			got, err := io.ReadAll(conn)
			r.NoError(err)
			r.Equal("last words", string(got))
		})
	})
}

func TestConnReturnsErrorsOfPackageNet(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			_, err := netpipe.OpenConn(ctx, r.World, r.Me)
			r.ErrorIs(err, runtime.ErrRange)
			r.ErrorContains(err, "Listen and Dial")
			conn, err := netpipe.OpenConn(ctx, r.World, 1-r.Me)
			r.NoError(err)
			r.Equal(netpipe.RankAddr{Team: "world", Rank: 1 - r.Me}, conn.RemoteAddr())
			r.Equal("rpipe", conn.LocalAddr().Network())
			r.NoError(conn.SetReadDeadline(time.Now().Add(time.Millisecond)))
			_, err = conn.Read(make([]byte, 1))
			r.ErrorIs(err, os.ErrDeadlineExceeded)
			var failure net.Error
			r.ErrorAs(err, &failure)
			r.True(failure.Timeout())
			r.NoError(conn.SetReadDeadline(time.Time{}))
			n, err := conn.Write(nil)
			r.NoError(err)
			r.Zero(n)
			n, err = conn.Read(nil)
			r.NoError(err)
			r.Zero(n)
			r.NoError(r.World.Barrier(ctx))
			r.NoError(conn.Close())
		})
	})
}

func TestConnReturnsErrRankDead(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		_ = c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			conn, err := netpipe.OpenConn(ctx, r.World, 1-r.Me)
			r.NoError(err)
			if r.Me == 0 {
				_, err = conn.Write([]byte("x"))
				r.NoError(err)
				r.NoError(conn.CloseWrite())
				r.Die()
			}
			_, err = io.ReadAll(conn)
			if err == nil { // the end came before death
				_, err = conn.Write(make([]byte, 1<<20))
			}
			r.ErrorIs(err, runtime.ErrRankDead)
		})
	})
}

func TestConnAllocatesNothingPerCall(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, config := range []testjob.Config{{Provider: "loop", Ranks: 2}, {Provider: "loop", Queued: true, Ranks: 2}} {
		during(t, config, func(ctx context.Context, a, b *testjob.Rank) {
			c1, c2 := connected(ctx, t, a, b)
			defer c1.Close()
			defer c2.Close()
			buf := make([]byte, 1000)
			require.Zero(t, testing.AllocsPerRun(200, func() {
				_, _ = c1.Write(buf)
				_, _ = io.ReadFull(c2, buf)
			}))
		})
	}
}

// TestNilContextNeverEnds makes all calls that take a context.
func TestNilContextNeverEnds(t *testing.T) {
	testjob.All(t, 2, func(_ context.Context, r *testjob.Rank) {
		nilCalls(r)
		r.NoError(r.World.Barrier(nil)) //nolint:staticcheck // the test's subject
	})
}

func nilCalls(r *testjob.Rank) {
	var none context.Context

	l, err := netpipe.Listen(none, r.World)
	r.NoError(err)
	dialed := make(chan error, 1)
	go func() {
		c, err := netpipe.Dial(none, r.World, r.Right())
		if err == nil {
			_, err = c.Write([]byte{1})
		}
		if err == nil {
			err = c.Close()
		}
		dialed <- err
	}()
	c, err := l.Accept()
	r.NoError(err)
	_, err = c.Read(make([]byte, 1))
	r.NoError(err)
	r.NoError(<-dialed)
	r.NoError(c.Close())
	r.NoError(l.Close())
	open, err := netpipe.OpenConn(none, r.World, r.Right())
	r.NoError(err)
	r.NoError(open.Close())
	if r.N > 2 { // else that was both
		open, err = netpipe.OpenConn(none, r.World, r.Left())
		r.NoError(err)
		r.NoError(open.Close())
	}
}
