package gochan_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/gochan"
	"github.com/gopgas/gopgas/runtime"
)

// channel opens a channel from rank 0 to rank 1 and runs the rank's side of it.
func channel[T any](ctx context.Context, r *testjob.Rank, send func(s *gochan.Sender[T]), receive func(c *gochan.Receiver[T]), opts ...gochan.Option) {
	switch r.Me {
	case 0:
		s, err := gochan.OpenSender[T](ctx, r.World, 1, opts...)
		r.NoError(err)
		send(s)
		r.NoError(s.Close(ctx))
		r.NoError(s.Close(ctx))
		r.ErrorIs(s.Send(ctx, *new(T)), rpipe.ErrClosed)
	case 1:
		c, err := gochan.OpenReceiver[T](ctx, r.World, 0, opts...)
		r.NoError(err)
		receive(c)
		r.NoError(c.Close(ctx))
	}
}

type point struct {
	X, Y int32
	Name [5]byte
}

func TestRecvReturnsValuesInOrderThenEOF(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		for name, opts := range map[string][]gochan.Option{
			"roomy":  nil,
			"narrow": {gochan.WithWidth(2)},
			"tiny":   {gochan.WithWidth(1), gochan.WithHeap(64)},
			"pull":   {gochan.WithPull(), gochan.WithWidth(3)},
		} {
			t.Run(name, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					n := int32(2000)
					if name == "tiny" {
						n = 200 // each waits for the one before
					}
					channel(ctx, r, func(s *gochan.Sender[point]) {
						for i := range n {
							r.NoError(s.Send(ctx, point{i, -i, [5]byte{byte(i)}}))
						}
					}, func(c *gochan.Receiver[point]) {
						next := int32(0)
						for p, err := range c.All(ctx) {
							r.NoError(err)
							r.Equal(point{next, -next, [5]byte{byte(next)}}, p)
							next++
						}
						r.EqualValues(n, next)
						_, err := c.Recv(ctx)
						r.Equal(io.EOF, err)
					}, opts...)
				})
			})
		}
	})
}

// TestSenderDelaysNoSingleValue sends values one at a time, each after the receiver
// has responded to the one before.
func TestSenderDelaysNoSingleValue(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			other := 1 - r.Me
			s, err := gochan.OpenSender[int](ctx, r.World, other, gochan.WithWidth(1))
			r.NoError(err)
			c, err := gochan.OpenReceiver[int](ctx, r.World, other, gochan.WithWidth(1))
			r.NoError(err)
			for i := range 100 {
				if r.Me == 0 {
					r.NoError(s.Send(ctx, i))
				}
				v, err := c.Recv(ctx)
				r.NoError(err)
				r.Equal(i, v)
				if r.Me == 1 {
					r.NoError(s.Send(ctx, i))
				}
			}
		})
	})
}

// Values that gather while the receiver is behind leave by themselves when it has
// caught up. They take fewer blocks than there are values.
func TestSenderCoalescesGatheredValues(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			const n = 50
			channel(ctx, r, func(s *gochan.Sender[int]) {
				for i := range n {
					r.NoError(s.Send(ctx, i))
				}
				r.NoError(r.World.Barrier(ctx)) // the receiver begins
				r.NoError(r.World.Barrier(ctx)) // it has all of them, though nothing was sent meanwhile
				r.Less(s.Written(), uint64(10))
			}, func(c *gochan.Receiver[int]) {
				r.NoError(r.World.Barrier(ctx))
				for i := range n {
					v, err := c.Recv(ctx)
					r.NoError(err)
					r.Equal(i, v)
				}
				r.NoError(r.World.Barrier(ctx))
				_, err := c.Recv(ctx)
				r.Equal(io.EOF, err)
			}, gochan.WithWidth(2))
		})
	})
}

func TestTrySendAndTryRecvReturnErrWouldBlock(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			sent := make([]byte, 1)
			if r.Me == 0 {
				s, err := gochan.OpenSender[int](ctx, r.World, 1, gochan.WithWidth(2))
				r.NoError(err)
				r.ErrorIs(s.TrySend(0), rpipe.ErrWouldBlock, "the receiver is not there")
				r.NoError(r.World.Barrier(ctx))
				r.NoError(r.World.Barrier(ctx))
				n := 0
				for err == nil {
					if err = s.TrySend(n); err == nil {
						n++
					}
				}
				r.ErrorIs(err, rpipe.ErrWouldBlock)
				r.Greater(n, 2)
				for err = nil; err == nil; { // the sender takes the gathered values once, and as many gather again
					short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
					if err = s.Send(short, n); err == nil {
						n++
					}
					cancel()
				}
				r.ErrorIs(err, context.DeadlineExceeded)
				_, err = r.World.Exchange(ctx, []byte{byte(n), byte(n >> 8)})
				r.NoError(err)
				r.NoError(s.Close(ctx))
				r.ErrorIs(s.TrySend(1), rpipe.ErrClosed)
				return
			}
			r.NoError(r.World.Barrier(ctx))
			c, err := gochan.OpenReceiver[int](ctx, r.World, 0, gochan.WithWidth(2))
			r.NoError(err)
			_, err = c.TryRecv()
			r.ErrorIs(err, rpipe.ErrWouldBlock)
			r.NoError(r.World.Barrier(ctx))
			counts, err := r.World.Exchange(ctx, sent)
			r.NoError(err)
			n := 0
			for {
				v, err := c.TryRecv()
				if errors.Is(err, io.EOF) {
					break
				}
				if !errors.Is(err, rpipe.ErrWouldBlock) {
					r.NoError(err)
					r.Equal(n, v)
					n++
				}
			}
			r.Equal(int(counts[0][0])|int(counts[0][1])<<8, n)
			r.NoError(c.Close(ctx))
		})
	})
}

func TestManyGoroutinesSendAndReceive(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			const workers, each = 4, 100
			channel(ctx, r, func(s *gochan.Sender[int]) {
				var all sync.WaitGroup
				for k := range workers {
					all.Go(func() {
						for i := range each {
							r.NoError(s.Send(ctx, k*each+i))
						}
					})
				}
				all.Wait()
			}, func(c *gochan.Receiver[int]) {
				var mu sync.Mutex
				seen := map[int]bool{}
				var all sync.WaitGroup
				for range workers {
					all.Go(func() {
						for v, err := range c.All(ctx) {
							r.NoError(err)
							mu.Lock()
							r.False(seen[v])
							seen[v] = true
							mu.Unlock()
						}
					})
				}
				all.Wait()
				r.Len(seen, workers*each)
			}, gochan.WithWidth(4))
		})
	})
}

func TestSendEndsAfterReceiverClosesOrDies(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		t.Run("closed", func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				if r.Me == 1 {
					c, err := gochan.OpenReceiver[int](ctx, r.World, 0, gochan.WithWidth(2))
					r.NoError(err)
					_, err = c.Recv(ctx)
					r.NoError(err)
					r.NoError(c.Close(ctx))
					return
				}
				s, err := gochan.OpenSender[int](ctx, r.World, 1, gochan.WithWidth(2))
				r.NoError(err)
				sent := -1
				for ; err == nil; sent++ {
					err = s.Send(ctx, 1)
				}
				r.ErrorIs(err, rpipe.ErrClosed)
				if err = s.Close(ctx); sent == 1 {
					r.NoError(err, "all that was sent was received")
				} else {
					r.ErrorIs(err, rpipe.ErrClosed)
				}
			})
		})
		t.Run("dead", func(t *testing.T) {
			_ = c.Try(t, func(ctx context.Context, r *testjob.Rank) {
				if r.Me == 1 {
					c, err := gochan.OpenReceiver[int](ctx, r.World, 0, gochan.WithWidth(2))
					r.NoError(err)
					_, err = c.Recv(ctx)
					r.NoError(err)
					r.Die()
				}
				s, err := gochan.OpenSender[int](ctx, r.World, 1, gochan.WithWidth(2))
				r.NoError(err)
				for err == nil {
					err = s.Send(ctx, 1)
				}
				r.ErrorIs(err, runtime.ErrRankDead)
			})
		})
	})
}

// The job's end drops values that are still gathered.
func TestOpenSenderEndsWithJob(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 1 {
				_, err := gochan.OpenReceiver[int](ctx, r.World, 0, gochan.WithWidth(1))
				r.NoError(err)
				return
			}
			s, err := gochan.OpenSender[int](ctx, r.World, 1, gochan.WithWidth(1))
			r.NoError(err)
			for range 20 {
				if err := s.Send(ctx, 1); err != nil {
					r.ErrorIs(err, runtime.ErrClosed) // rank 1 has returned
					return
				}
			}
		})
	})
}

func TestSendAndRecvAllocateNothingPerValue(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, c := range []testjob.Config{{Provider: "loop", Ranks: 1}, {Provider: "loop", Queued: true, Ranks: 1}} {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				s, err := gochan.OpenSender[point](ctx, r.World, 0)
				r.NoError(err)
				c, err := gochan.OpenReceiver[point](ctx, r.World, 0)
				r.NoError(err)
				send := func(values int) {
					for i := range values {
						_ = s.Send(ctx, point{X: int32(i)})
					}
					for range values {
						_, _ = c.Recv(ctx)
					}
				}
				send(200)
				r.Zero(r.Allocs(100, func() { send(1) }))
				r.Less(r.Allocs(10, func() { send(200) }), 10.0, "where values gather, some per block at most")
			})
		})
	}
}

func TestArrivalsRunsBesideRecv(t *testing.T) {
	testjob.EachSample(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			const n = 200
			if r.Me == 0 {
				s, err := gochan.OpenSender[int](ctx, r.World, 1)
				r.NoError(err)
				for i := range n {
					r.NoError(s.Send(ctx, i))
				}
				r.NoError(s.Close(ctx))
				return
			}
			rc, err := gochan.OpenReceiver[int](ctx, r.World, 0)
			r.NoError(err)
			go rc.Arrivals()
			for i := range n {
				v, err := rc.Recv(ctx)
				r.NoError(err)
				r.Equal(i, v)
			}
			r.NoError(rc.Close(ctx))
		})
	})
}

// TestNilContextNeverEnds makes all calls that take a context.
func TestNilContextNeverEnds(t *testing.T) {
	testjob.All(t, 2, func(_ context.Context, r *testjob.Rank) {
		var none context.Context
		out, err := gochan.OpenSender[int](none, r.World, r.Right())
		r.NoError(err)
		in, err := gochan.OpenReceiver[int](none, r.World, r.Left())
		r.NoError(err)
		r.NoError(out.Send(none, 1))
		r.NoError(out.Send(none, 2))
		_, err = in.Recv(none)
		r.NoError(err)
		closed := make(chan error, 1)
		go func() { closed <- out.Close(none) }()
		for _, err := range in.All(none) {
			r.NoError(err)
		}
		r.NoError(<-closed)
		r.NoError(in.Close(none))
		r.NoError(r.World.Barrier(none))
	})
}
