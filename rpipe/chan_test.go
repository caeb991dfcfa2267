package rpipe_test

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
	"github.com/gopgas/gopgas/runtime"
)

// channel opens a channel from rank 0 to rank 1 and runs the rank's side of it.
func channel[T any](ctx context.Context, r *testjob.Rank, send func(s *rpipe.Sender[T]), receive func(c *rpipe.Receiver[T]), opts ...rpipe.Option) {
	switch r.Me {
	case 0:
		s, err := rpipe.OpenSender[T](ctx, r.World, 1, opts...)
		r.NoError(err)
		send(s)
		r.NoError(s.Close(ctx))
		r.NoError(s.Close(ctx))
		r.ErrorIs(s.Send(ctx, *new(T)), rpipe.ErrClosed)
	case 1:
		c, err := rpipe.OpenReceiver[T](ctx, r.World, 0, opts...)
		r.NoError(err)
		receive(c)
		r.NoError(c.Close(ctx))
	}
}

type point struct {
	X, Y int32
	Name [5]byte
}

func TestValuesArriveInOrderAndThenTheEnd(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for name, opts := range map[string][]rpipe.Option{
			"roomy":  nil,
			"narrow": {rpipe.WithWidth(2)},
			"tiny":   {rpipe.WithWidth(1), rpipe.WithHeap(64)},
			"pull":   {rpipe.WithPull(), rpipe.WithWidth(3)},
		} {
			t.Run(name, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					const n = 2000
					channel(ctx, r, func(s *rpipe.Sender[point]) {
						for i := range int32(n) {
							r.NoError(s.Send(ctx, point{i, -i, [5]byte{byte(i)}}))
						}
					}, func(c *rpipe.Receiver[point]) {
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

// TestNoValueWaitsForAnother sends values one at a time, each after the receiver
// has answered the one before.
func TestNoValueWaitsForAnother(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			other := 1 - r.Me
			s, err := rpipe.OpenSender[int](ctx, r.World, other, rpipe.WithWidth(1))
			r.NoError(err)
			c, err := rpipe.OpenReceiver[int](ctx, r.World, other, rpipe.WithWidth(1))
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

// What gathers while the receiver is behind leaves by itself when it has caught
// up, and in fewer blocks than there are values.
func TestValuesThatGatheredLeaveTogetherAndByThemselves(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			const n = 50
			channel(ctx, r, func(s *rpipe.Sender[int]) {
				for i := range n {
					r.NoError(s.Send(ctx, i))
				}
				r.NoError(r.World.Barrier(ctx)) // the receiver begins
				r.NoError(r.World.Barrier(ctx)) // it has all of them, though nothing was sent meanwhile
				r.Less(rpipe.Written(s), uint64(10))
			}, func(c *rpipe.Receiver[int]) {
				r.NoError(r.World.Barrier(ctx))
				for i := range n {
					v, err := c.Recv(ctx)
					r.NoError(err)
					r.Equal(i, v)
				}
				r.NoError(r.World.Barrier(ctx))
				_, err := c.Recv(ctx)
				r.Equal(io.EOF, err)
			}, rpipe.WithWidth(2))
		})
	})
}

func TestTrySendAndTryRecvWaitForNothing(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			sent := make([]byte, 1)
			if r.Me == 0 {
				s, err := rpipe.OpenSender[int](ctx, r.World, 1, rpipe.WithWidth(2))
				r.NoError(err)
				ok, err := s.TrySend(0)
				r.NoError(err)
				r.False(ok, "the receiver is not there")
				r.NoError(r.World.Barrier(ctx))
				r.NoError(r.World.Barrier(ctx))
				n := 0
				for ok = true; ok; {
					ok, err = s.TrySend(n)
					r.NoError(err)
					if ok {
						n++
					}
				}
				r.Greater(n, 2)
				short, cancel := context.WithTimeout(ctx, time.Millisecond)
				r.ErrorIs(s.Send(short, -1), context.DeadlineExceeded)
				cancel()
				_, err = r.World.Exchange(ctx, []byte{byte(n), byte(n >> 8)})
				r.NoError(err)
				r.NoError(s.Close(ctx))
				_, err = s.TrySend(1)
				r.ErrorIs(err, rpipe.ErrClosed)
				return
			}
			r.NoError(r.World.Barrier(ctx))
			c, err := rpipe.OpenReceiver[int](ctx, r.World, 0, rpipe.WithWidth(2))
			r.NoError(err)
			_, ok, err := c.TryRecv()
			r.NoError(err)
			r.False(ok)
			r.NoError(r.World.Barrier(ctx))
			counts, err := r.World.Exchange(ctx, sent)
			r.NoError(err)
			n := 0
			for {
				v, ok, err := c.TryRecv()
				if errors.Is(err, io.EOF) {
					break
				}
				r.NoError(err)
				if ok {
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
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			const workers, each = 4, 100
			channel(ctx, r, func(s *rpipe.Sender[int]) {
				var all sync.WaitGroup
				for k := range workers {
					all.Go(func() {
						for i := range each {
							r.NoError(s.Send(ctx, k*each+i))
						}
					})
				}
				all.Wait()
			}, func(c *rpipe.Receiver[int]) {
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
			}, rpipe.WithWidth(4))
		})
	})
}

func TestASenderLearnsThatItsReceiverIsGone(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		t.Run("closed", func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				if r.Me == 1 {
					c, err := rpipe.OpenReceiver[int](ctx, r.World, 0, rpipe.WithWidth(2))
					r.NoError(err)
					_, err = c.Recv(ctx)
					r.NoError(err)
					r.NoError(c.Close(ctx))
					return
				}
				s, err := rpipe.OpenSender[int](ctx, r.World, 1, rpipe.WithWidth(2))
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
					c, err := rpipe.OpenReceiver[int](ctx, r.World, 0, rpipe.WithWidth(2))
					r.NoError(err)
					_, err = c.Recv(ctx)
					r.NoError(err)
					r.Die()
				}
				s, err := rpipe.OpenSender[int](ctx, r.World, 1, rpipe.WithWidth(2))
				r.NoError(err)
				for err == nil {
					err = s.Send(ctx, 1)
				}
				r.ErrorIs(err, runtime.ErrRankDead)
			})
		})
	})
}

// Values that are left gathered as the job ends are nobody's.
func TestASenderThatIsNotClosedEndsWithTheJob(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 1 {
				_, err := rpipe.OpenReceiver[int](ctx, r.World, 0, rpipe.WithWidth(1))
				r.NoError(err)
				return
			}
			s, err := rpipe.OpenSender[int](ctx, r.World, 1, rpipe.WithWidth(1))
			r.NoError(err)
			for range 20 {
				r.NoError(s.Send(ctx, 1))
			}
		})
	})
}

func TestNothingIsAllocatedPerValue(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, c := range []testjob.Config{mapped, queued} {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				s, err := rpipe.OpenSender[point](ctx, r.World, 0)
				r.NoError(err)
				c, err := rpipe.OpenReceiver[point](ctx, r.World, 0)
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
				r.Zero(testing.AllocsPerRun(100, func() { send(1) }))
				r.Less(testing.AllocsPerRun(10, func() { send(200) }), 10.0, "where values gather, some per block at most")
			})
		})
	}
}
