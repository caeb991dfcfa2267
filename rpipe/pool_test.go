package rpipe_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// boarded opens an end as soon as the window has a place. The place of a closed end is free
// once the last flag of its peer has arrived, for which no call waits.
func boarded[E any](ctx context.Context, r *testjob.Rank, open func() (E, error)) E {
	for {
		end, err := open()
		if err == nil {
			return end
		}
		r.ErrorContains(err, "are open")
		r.NoError(ctx.Err())
		time.Sleep(time.Millisecond)
	}
}

// TestPoolReusesPlaces opens and closes many more pipes than there are places, all ranks to
// all at a time.
func TestPoolReusesPlaces(t *testing.T) {
	testjob.Each(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			small := []rpipe.Option{rpipe.WithHeap(4096), rpipe.WithWidth(3)}
			c, err := rpipe.OverWindow(ctx, r.World, 2*r.N, small...)
			r.NoError(err)
			opts := append(small, rpipe.WithWindow(c))
			for round := range 4 {
				var writers []*rpipe.Writer[int]
				var readers []*rpipe.Reader[int]
				for other := range r.N {
					w := boarded(ctx, r, func() (*rpipe.Writer[int], error) { return rpipe.OpenWriter[int](ctx, r.World, other, opts...) })
					rd := boarded(ctx, r, func() (*rpipe.Reader[int], error) { return rpipe.OpenReader[int](ctx, r.World, other, opts...) })
					writers, readers = append(writers, w), append(readers, rd)
				}
				for to, w := range writers {
					r.NoError(w.Send(ctx, []int{round, r.Me, to}))
				}
				for from, rd := range readers {
					got := make([]int, 3)
					_, err := rd.Recv(ctx, got)
					r.NoError(err)
					r.Equal([]int{round, from, r.Me}, got)
				}
				var ends sync.WaitGroup
				for i := range readers {
					ends.Go(func() { _, _ = readers[i].Read(ctx) }) // up to the end
				}
				for i := range writers {
					r.NoError(writers[i].Close(ctx))
				}
				ends.Wait()
				for i := range readers {
					r.NoError(readers[i].Close(ctx))
				}
			}
			r.NoError(c.Close(ctx))
		})
	})
}

func TestOpenReturnsErrExhaustedWithoutPlace(t *testing.T) {
	pipetest.Mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
		c, err := rpipe.OverWindow(ctx, r.World, 2, rpipe.WithHeap(4096), rpipe.WithWidth(4))
		r.NoError(err)
		opts := []rpipe.Option{rpipe.WithHeap(4096), rpipe.WithWidth(4), rpipe.WithWindow(c)}
		w, err := rpipe.OpenWriter[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		rd, err := rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		_, err = rpipe.OpenWriter[byte](ctx, r.World, 0, opts...)
		r.ErrorIs(err, runtime.ErrExhausted)
		r.ErrorContains(err, "OverWindow")
		for _, larger := range []rpipe.Option{rpipe.WithHeap(8192), rpipe.WithWidth(5)} {
			_, err = rpipe.OpenReader[byte](ctx, r.World, 0, append(opts, larger)...)
			r.ErrorIs(err, rpipe.ErrTooLarge)
			r.ErrorContains(err, "OverWindow")
		}
		r.NoError(w.Send(ctx, []byte{1}))
		_, err = rd.Recv(ctx, nil)
		r.NoError(err)
		r.NoError(c.Close(ctx))
	})
}

// Ends that are still open as their pool closes, and whatever follows, are
// errors; none touches memory that is another window's by then.
func TestPipesEndWithTheirPool(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for mode, opts := range pipetest.Modes {
			t.Run(mode, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) { outlivePool(ctx, r, opts) })
			})
		}
	})
}

func outlivePool(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
	c := pool(ctx, r, 4)
	opts = append(opts[:len(opts):len(opts)], rpipe.WithWindow(c))
	var w, idle *rpipe.Writer[byte]
	var rd *rpipe.Reader[byte]
	var err error
	if r.Me == 0 {
		w, err = rpipe.OpenWriter[byte](ctx, r.World, 1, opts...)
		r.NoError(err)
		r.NoError(w.Send(ctx, []byte("one")))
	} else {
		rd, err = rpipe.OpenReader[byte](ctx, r.World, 0, opts...)
		r.NoError(err)
		_, err = rd.Recv(ctx, nil)
		r.NoError(err)
	}
	idle, err = rpipe.OpenWriter[byte](ctx, r.World, r.Right(), append(opts, rpipe.WithName("idle"))...)
	r.NoError(err)
	r.NoError(c.Close(ctx))
	r.ErrorIs(c.Close(ctx), rpipe.ErrClosed)
	_, err = rpipe.OpenWriter[byte](ctx, r.World, r.Right(), opts...)
	r.ErrorIs(err, rpipe.ErrClosed)
	if r.Me == 0 {
		err := w.Send(ctx, []byte("two"))
		r.ErrorIs(err, rpipe.ErrClosed)
		r.ErrorContains(err, "pool")
		r.NoError(w.Close(ctx))
	} else {
		_, err = rd.Read(ctx)
		r.ErrorIs(err, rpipe.ErrClosed)
		r.NoError(rd.Close(ctx))
	}
	_, err = idle.Alloc(ctx, 1)
	r.ErrorIs(err, rpipe.ErrClosed)
	r.NoError(idle.Close(ctx))
	r.Less(pipetest.Used(r.World), int64(1<<20), "the window's memory came back")
}

func TestOverWindowFailsAtEveryRank(t *testing.T) {
	for name, test := range map[string]struct {
		ends [2]int
		opts [2][]rpipe.Option
		kind error
	}{
		"ends":          {ends: [2]int{3, 4}, kind: runtime.ErrMismatch},
		"a bad number":  {ends: [2]int{3, 0}},
		"a bad option":  {ends: [2]int{3, 3}, opts: [2][]rpipe.Option{1: {rpipe.WithWidth(0)}}},
		"heaps":         {ends: [2]int{3, 3}, opts: [2][]rpipe.Option{{rpipe.WithHeap(640)}, {rpipe.WithHeap(6400)}}, kind: runtime.ErrMismatch},
		"no room in it": {ends: [2]int{1 << 10, 1 << 10}, kind: runtime.ErrExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					_, err := rpipe.OverWindow(ctx, r.World, test.ends[r.Me], test.opts[r.Me]...)
					r.Error(err)
					if test.kind != nil {
						r.ErrorIs(err, test.kind)
					} else if r.Me == 1 {
						r.ErrorIs(err, runtime.ErrRange)
					}
				})
			})
		})
	}
}

func TestOpenRefusesWrongPools(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		_, err := rpipe.OverWindow(ctx, nil, 1)
		r.ErrorIs(err, runtime.ErrTeam)
		c := pool(ctx, r, 2)
		team, err := r.World.Split(ctx, 0, r.Me)
		r.NoError(err)
		_, err = rpipe.OpenWriter[byte](ctx, team, 0, rpipe.WithWindow(c))
		r.ErrorIs(err, runtime.ErrTeam)
		_, err = fan.OpenIn[byte](ctx, team, []int{0}, rpipe.WithWindow(c))
		r.ErrorIs(err, runtime.ErrTeam)
		for range 3 { // a failed opening gives its part of the pool back
			_, err = fan.OpenIn[byte](ctx, r.World, []int{0, 1, 0}, rpipe.WithWindow(c))
			r.ErrorIs(err, runtime.ErrExhausted)
			r.ErrorContains(err, "OverWindow")
			_, err = fan.OpenOut[byte](ctx, r.World, []int{0, 1}, rpipe.WithWindow(c))
			r.ErrorIs(err, runtime.ErrExhausted)
			_, err = conveyor.Open[byte](ctx, r.World, conveyor.WithWindow(c))
			r.ErrorIs(err, runtime.ErrExhausted)
			_, err = active.Open(ctx, r.World, nil, active.WithWindow(c))
			r.ErrorIs(err, runtime.ErrExhausted)
		}
		_, err = fan.OpenOut[byte](ctx, r.World, []int{0}, rpipe.WithWindow(c), rpipe.WithHeap(4<<20))
		r.ErrorIs(err, rpipe.ErrTooLarge)
		_, err = rpipe.OpenReader[byte](ctx, r.World, 0, rpipe.WithWindow(nil))
		r.NoError(err, "as without")
		r.NoError(c.Close(ctx))
	})
}

// The death of a rank ends the pipes of a pool that lead to it. Pipes between other ranks go on,
// and open and close.
func TestPipesOverWindowOutliveOtherRank(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			c := pool(ctx, r, 3)
			over := rpipe.WithWindow(c)
			if r.Me == 2 {
				pipetest.Leave(ctx, r)
				r.Die()
			}
			lost, err := rpipe.OpenReader[byte](ctx, r.World, 2, over)
			r.NoError(err)
			pipetest.Leave(ctx, r)
			ctx, cancel := testwatch.With(context.WithoutCancel(ctx)) // the death ends the job's
			defer cancel()
			_, err = lost.Read(ctx)
			r.ErrorIs(err, runtime.ErrRankDead)
			for range 2 {
				w := boarded(ctx, r, func() (*rpipe.Writer[byte], error) { return rpipe.OpenWriter[byte](ctx, r.World, 1-r.Me, over) })
				rd := boarded(ctx, r, func() (*rpipe.Reader[byte], error) { return rpipe.OpenReader[byte](ctx, r.World, 1-r.Me, over) })
				var sent sync.WaitGroup
				sent.Go(func() {
					for i := range 200 {
						r.NoError(w.Send(ctx, []byte{byte(i)}))
					}
					r.NoError(w.Close(ctx))
				})
				for i := range 200 {
					got := []byte{0}
					_, err := rd.Recv(ctx, got)
					r.NoError(err)
					r.Equal(byte(i), got[0])
				}
				_, err = rd.Read(ctx)
				r.Equal(io.EOF, err)
				sent.Wait()
				r.NoError(rd.Close(ctx))
			}
		})
		require.ErrorContains(t, err, "ended without returning")
		require.NotErrorIs(t, err, testwatch.ErrStuck)
	})
}

// bodiesOverWindows are run as processes.
func bodiesOverWindows() map[string]testjob.Body {
	return map[string]testjob.Body{"blocks over a window": func(ctx context.Context, r *testjob.Rank) {
		for _, mode := range slices.Sorted(maps.Keys(pipetest.Modes)) {
			overWindow(func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
				pipetest.Ends(ctx, r, func(w *rpipe.Writer[int]) {
					for i := range 100 {
						r.NoError(w.Send(ctx, make([]int, i*7)))
					}
				}, func(rd *rpipe.Reader[int]) {
					for i := range 100 {
						n, err := rd.Recv(ctx, nil)
						r.NoError(err)
						r.Equal(i*7, n)
					}
					_, err := rd.Read(ctx)
					r.Equal(io.EOF, err)
				}, append(opts, rpipe.WithWidth(5))...)
			})(ctx, r, pipetest.Modes[mode])
			fmt.Println("well:", mode)
		}
	}}
}

func TestPipesOverWindowConnectProcesses(t *testing.T) {
	for _, j := range testjob.Processes(2) {
		for name := range bodiesOverWindows() {
			t.Run(j.String()+"/"+name, func(t *testing.T) { j.Run(t, name) })
		}
	}
}

func TestPipesOverWindowAllocateNothingPerOperation(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, c := range []testjob.Config{pipetest.Mapped, pipetest.Queued} {
		for mode, opts := range pipetest.Modes {
			t.Run(c.String()+"/"+mode, func(t *testing.T) {
				pipetest.Alone(t, c, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
					over := pool(ctx, r, 2)
					l.Open(append(opts[:len(opts):len(opts)], rpipe.WithWidth(8), rpipe.WithBlocks(16), rpipe.WithWindow(over))...)
					for _, size := range []int{100, 5000} { // below and above bulk
						r.Zero(r.Allocs(300, func() {
							b, _ := l.W.Alloc(ctx, size)
							_ = l.W.Write(ctx, b)
							b, _ = l.Rd.Read(ctx)
							_ = l.Rd.Free(b)
						}), "%d bytes", size)
					}
					l.Close()
					r.NoError(over.Close(ctx))
				})
			})
		}
	}
}

func TestWriteOverWindowPostsOnceAndTwiceInBulk(t *testing.T) {
	pipetest.Alone(t, pipetest.Queued, func(ctx context.Context, r *testjob.Rank, l *pipetest.Loopback) {
		over := pool(ctx, r, 2)
		l.Open(rpipe.WithWindow(over))
		for size, posts := range map[int]uint64{1: 1, 4096: 1, 4097: 2, 100_000: 2} {
			b := l.Alloc(size)
			cost := l.Cost(func() { l.Write(b) })
			r.Equal([2]uint64{posts, 2}, [2]uint64{cost.PostCalls, cost.Requests()}, "%d bytes", size)
			cost = l.Cost(func() { b = l.Read(b) })
			r.Zero(cost.Requests())
			l.Free(b)
		}
		l.Close()
		r.NoError(over.Close(ctx))
	})
}
