package netpipe_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/netpipe"
	"github.com/gopgas/gopgas/runtime"
)

// echo accepts connections until the listener closes, and sends received bytes back.
func echo(r *testjob.Rank, l net.Listener) (wait func()) {
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				r.ErrorIs(err, net.ErrClosed)
				return
			}
			serving.Go(func() {
				_, _ = io.Copy(c, c)
				c.Close()
			})
		}
	})
	return serving.Wait
}

// request sends a number over c and returns the bytes of the response, up to the end.
func request(r *testjob.Rank, c *netpipe.Conn, n uint64) uint64 {
	_, err := c.Write(binary.LittleEndian.AppendUint64(nil, n))
	r.NoError(err)
	r.NoError(c.CloseWrite())
	got, err := io.ReadAll(c)
	r.NoError(err)
	r.Len(got, 8)
	r.NoError(c.Close())
	return binary.LittleEndian.Uint64(got)
}

func TestEveryRankDialsEveryRankFromManyGoroutines(t *testing.T) {
	testjob.Each(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			small := netpipe.WithHeap(64 << 10) // there are hundreds of pipes
			l, err := netpipe.Listen(ctx, r.World, small)
			r.NoError(err)
			r.Equal(netpipe.RankAddr{Team: "world", Rank: r.Me}, l.Addr())
			served := echo(r, l)
			var all sync.WaitGroup
			for to := range r.N {
				for i := range 3 {
					all.Go(func() {
						c, err := netpipe.Dial(ctx, r.World, to, small)
						r.NoError(err)
						r.Equal(netpipe.RankAddr{Team: "world", Rank: to}, c.RemoteAddr())
						r.EqualValues(r.Me*1000+to*10+i, request(r, c, uint64(r.Me*1000+to*10+i)))
					})
				}
			}
			all.Wait()
			r.NoError(r.World.Barrier(ctx))
			r.NoError(l.Close())
			r.NoError(l.Close())
			served()
		})
	})
}

// TestRankDialsManyTimesBesideFullQueues has the listener's responses find no room, so
// that they wait in line while the dialer waits.
func TestRankDialsManyTimesBesideFullQueues(t *testing.T) {
	for _, c := range testjob.Strained(2) {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				const dials = 100
				if r.Me == 0 {
					l, err := netpipe.Listen(ctx, r.World)
					r.NoError(err)
					for range dials {
						c, err := l.Accept()
						r.NoError(err)
						r.NoError(c.Close())
					}
					r.NoError(r.World.Barrier(ctx))
					r.NoError(l.Close())
					return
				}
				for range dials {
					c, err := netpipe.Dial(ctx, r.World, 0)
					r.NoError(err)
					r.NoError(c.Close())
				}
				r.NoError(r.World.Barrier(ctx))
			})
		})
	}
}

// TestDialWaitsForNextListener has listeners come and go while ranks dial.
func TestDialWaitsForNextListener(t *testing.T) {
	testjob.EachSample(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me > 0 {
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				_, err := netpipe.Dial(short, r.World, 0, netpipe.WithName("no listener's"))
				r.ErrorIs(err, context.DeadlineExceeded)
				cancel()
				for range 4 {
					c, err := netpipe.Dial(ctx, r.World, 0)
					r.NoError(err)
					r.Positive(r.Me)
					r.NoError(c.Close())
				}
				return
			}
			for accepted := 0; accepted < 8; {
				l, err := netpipe.Listen(ctx, r.World)
				r.NoError(err)
				for range 2 {
					c, err := l.Accept()
					r.NoError(err)
					// A dialer that a closing listener turned away has closed this one.
					if _, err = c.Read(make([]byte, 1)); errors.Is(err, io.EOF) {
						accepted++
					}
					r.NoError(c.Close())
					if accepted == 8 {
						break
					}
				}
				r.NoError(l.Close())
			}
		})
	})
}

func TestListenerServesNextDialAfterCanceledDial(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 1 {
				r.NoError(r.World.Barrier(ctx)) // rank 0 listens
				short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
				_, err := netpipe.Dial(short, r.World, 0)
				cancel()
				r.ErrorIs(err, context.DeadlineExceeded)
				r.NoError(r.World.Barrier(ctx)) // rank 0 accepts
				c, err := netpipe.Dial(ctx, r.World, 0)
				r.NoError(err)
				r.EqualValues(5, request(r, c, 5))
				r.NoError(r.World.Barrier(ctx))
				return
			}
			l, err := netpipe.Listen(ctx, r.World)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			r.NoError(r.World.Barrier(ctx))
			served := echo(r, l)
			r.NoError(r.World.Barrier(ctx))
			r.NoError(l.Close())
			served()
		})
	})
}

func TestDialReturnsErrMismatchForOtherOptions(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 1 {
				_, err := netpipe.Dial(ctx, r.World, 0, netpipe.WithWidth(3))
				r.ErrorIs(err, runtime.ErrMismatch)
				r.NoError(r.World.Barrier(ctx))
				return
			}
			l, err := netpipe.Listen(ctx, r.World)
			r.NoError(err)
			c, err := l.Accept()
			r.NoError(err)
			_, err = c.Read(make([]byte, 1))
			r.Error(err)
			c.Close()
			r.NoError(r.World.Barrier(ctx))
			r.NoError(l.Close())
		})
	})
}

func TestAcceptEndsWithListenerAndJob(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		accepts := make(chan error, 4)
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for _, early := range []bool{true, false} {
				l, err := netpipe.Listen(ctx, r.World)
				r.NoError(err)
				go func() {
					_, err := l.Accept()
					accepts <- err
				}()
				if early {
					r.NoError(l.Close())
				}
			}
		})
		for range 4 {
			err := <-accepts
			if !errors.Is(err, net.ErrClosed) && !errors.Is(err, runtime.ErrClosed) && !errors.Is(err, runtime.ErrAborted) {
				t.Error(err)
			}
		}
	})
}

// TestClosedConnectionsReleaseMemory makes more connections than the heap holds.
func TestClosedConnectionsReleaseMemory(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			heap := netpipe.WithHeap(8 << 20)
			if r.Me == 0 {
				l, err := netpipe.Listen(ctx, r.World, heap)
				r.NoError(err)
				served := echo(r, l)
				r.NoError(r.World.Barrier(ctx))
				r.NoError(l.Close())
				served()
				return
			}
			for i := range uint64(40) {
				c, err := netpipe.Dial(ctx, r.World, 0, heap)
				r.NoError(err)
				r.Equal(i, request(r, c, i))
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

func TestPipesCarryHTTP(t *testing.T) {
	testjob.EachSample(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			body := strings.Repeat("a page that is larger than the heaps of the pipes ", 20_000)
			if r.Me == 0 {
				l, err := netpipe.Listen(ctx, r.World)
				r.NoError(err)
				server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })}
				served := make(chan error, 1)
				go func() { served <- server.Serve(l) }()
				defer func() {
					r.NoError(server.Shutdown(ctx))
					r.ErrorIs(<-served, http.ErrServerClosed)
				}()
			}
			transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return netpipe.Dial(ctx, r.World, 0) }}
			defer transport.CloseIdleConnections()
			for range 3 {
				request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://rank0/", nil)
				r.NoError(err)
				response, err := (&http.Client{Transport: transport}).Do(request)
				r.NoError(err)
				got, err := io.ReadAll(response.Body)
				r.NoError(err)
				r.NoError(response.Body.Close())
				r.True(body == string(got))
			}
			transport.CloseIdleConnections()
			r.NoError(r.World.Barrier(ctx))
		})
	})
}
