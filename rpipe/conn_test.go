package rpipe_test

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
func connected(ctx context.Context, t testing.TB, a, b *testjob.Rank, opts ...rpipe.Option) (*rpipe.Conn, *rpipe.Conn) {
	c1, err := rpipe.OpenConn(ctx, a.World, b.Me, opts...)
	require.NoError(t, err)
	c2, err := rpipe.OpenConn(ctx, b.World, a.Me, opts...)
	require.NoError(t, err)
	return c1, c2
}

// connModes are the connections that package net's test is run with.
var connModes = map[string][]rpipe.Option{
	"default": nil,
	"tiny":    {rpipe.WithHeap(2048), rpipe.WithWidth(2)},
	"pull":    {rpipe.WithPull()},
}

func TestConnsAreAsPackageNetWantsThem(t *testing.T) {
	eachConnMode(t, func(t *testing.T, c testjob.Config, opts []rpipe.Option) {
		// Each of its tests gets a job, and so a watchdog, of its own.
		nettest.TestConn(t, func() (net.Conn, net.Conn, func(), error) {
			a, b, end := begin(t, c)
			c1, c2 := connected(a.Job.Context(), t, a, b, opts...)
			return c1, c2, func() { c1.Close(); c2.Close(); end() }, nil
		})
	})
}

func TestConnsOverAWindowAreAsPackageNetWantsThem(t *testing.T) {
	eachConnMode(t, func(t *testing.T, c testjob.Config, opts []rpipe.Option) {
		nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
			a, b, end := begin(t, c)
			ctx := a.Job.Context()
			opened := make(chan net.Conn, 1)
			go func() { opened <- overCarrier(ctx, b, opts) }()
			c1 = overCarrier(ctx, a, opts)
			c2 = <-opened
			return c1, c2, func() { c1.Close(); c2.Close(); end() }, nil
		})
	})
}

func eachConnMode(t *testing.T, test func(t *testing.T, c testjob.Config, opts []rpipe.Option)) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for name, opts := range connModes {
			t.Run(name, func(t *testing.T) { test(t, c, opts) })
		}
	})
}

// overCarrier opens a rank's end of a connection over a carrier of its own.
func overCarrier(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) net.Conn {
	opts = append([]rpipe.Option{rpipe.WithHeap(rpipe.DefaultConnHeap)}, opts...)
	carrier, err := rpipe.OverWindow(ctx, r.World, 2, opts...)
	r.NoError(err)
	c, err := rpipe.OpenConn(ctx, r.World, 1-r.Me, append(opts, rpipe.WithCarrier(carrier))...)
	r.NoError(err)
	return c
}

func TestAConnEndsOneWayAtATime(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			conn, err := rpipe.OpenConn(ctx, r.World, 1-r.Me)
			r.NoError(err)
			// More than both pipes hold, so that each end reads while the other writes.
			question, answer := bytes.Repeat([]byte("question"), 100_000), bytes.Repeat([]byte("answer"), 100_000)
			if r.Me == 0 {
				n, err := conn.Write(question)
				r.NoError(err)
				r.Len(question, n)
				r.NoError(conn.CloseWrite())
				_, err = conn.Write([]byte{1})
				r.ErrorIs(err, net.ErrClosed)
				got, err := io.ReadAll(conn)
				r.NoError(err)
				r.True(bytes.Equal(answer, got))
			} else {
				got, err := io.ReadAll(conn)
				r.NoError(err)
				r.True(bytes.Equal(question, got))
				_, err = conn.Write(answer)
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

// TestAClosedConnLetsNobodyWait closes a full connection whose other end does not
// read: what comes later fails at once, though the goodbye waits for room.
func TestAClosedConnLetsNobodyWait(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			conn, err := rpipe.OpenConn(ctx, r.World, 1-r.Me, rpipe.WithWidth(2), rpipe.WithHeap(2048))
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

// TestAClosedConnHasSentWhatWasWritten closes at once, and ends the job's body: the
// other end reads everything all the same.
func TestAClosedConnHasSentWhatWasWritten(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			conn, err := rpipe.OpenConn(ctx, r.World, 1-r.Me, rpipe.WithWidth(1))
			r.NoError(err)
			if r.Me == 0 {
				_, err = conn.Write([]byte("last words"))
				r.NoError(err)
				r.NoError(conn.Close())
				return
			}
			time.Sleep(5 * time.Millisecond) // the other end has closed, as a rule
			got, err := io.ReadAll(conn)
			r.NoError(err)
			r.Equal("last words", string(got))
		})
	})
}

func TestAConnsErrorsAreThoseOfPackageNet(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			_, err := rpipe.OpenConn(ctx, r.World, r.Me)
			r.ErrorIs(err, runtime.ErrRange)
			r.ErrorContains(err, "Listen and Dial")
			conn, err := rpipe.OpenConn(ctx, r.World, 1-r.Me)
			r.NoError(err)
			r.Equal(rpipe.RankAddr{Team: "world", Rank: 1 - r.Me}, conn.RemoteAddr())
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

func TestAConnLearnsOfADeadRank(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		_ = c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			conn, err := rpipe.OpenConn(ctx, r.World, 1-r.Me)
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

func TestAConnAllocatesNothingPerCall(t *testing.T) {
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
