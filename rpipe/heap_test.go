package rpipe_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/trace"
)

// eachHeap runs f with a heap of rank 0 at rank 1, which does nothing but serve
// it, on every transport and over every link. Both close in the end.
func eachHeap(t *testing.T, f func(ctx context.Context, r *testjob.Rank, h *rpipe.Heap[int64]), opts ...rpipe.Option) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for link, over := range links {
			t.Run(link, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					over(func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) { served(ctx, r, f, opts) })(ctx, r, opts)
				})
			})
		}
	})
}

func served(ctx context.Context, r *testjob.Rank, f func(ctx context.Context, r *testjob.Rank, h *rpipe.Heap[int64]), opts []rpipe.Option) {
	if r.Me == 0 {
		h, err := rpipe.OpenHeap[int64](ctx, r.World, 1, opts...)
		r.NoError(err)
		f(ctx, r, h)
		r.NoError(h.Close(ctx))
		return
	}
	s, err := rpipe.ServeHeap(ctx, r.World, 0, opts...)
	r.NoError(err)
	r.NoError(s.Wait(ctx))
	r.NoError(s.Close(ctx))
}

func TestAHeapHoldsWhatWasPut(t *testing.T) {
	eachHeap(t, func(ctx context.Context, r *testjob.Rank, h *rpipe.Heap[int64]) {
		r.Equal("cache#0", h.Name())
		b, err := h.Alloc(ctx, 1000)
		r.NoError(err)
		r.Equal(1000, b.Len())
		src := make([]int64, 1000)
		for i := range src {
			src[i] = int64(i)
		}
		r.NoError(h.Put(ctx, b, 0, src))
		clear(src) // local completion
		r.NoError(h.Put(ctx, b, 500, []int64{-1, -2}))
		got := make([]int64, 4)
		r.NoError(h.Get(ctx, b, 499, got))
		r.Equal([]int64{499, -1, -2, 502}, got)
		if mem := b.Mem(); mem != nil {
			r.Len(mem, 1000)
			r.EqualValues(-1, mem[500])
			mem[500] = 7
			r.NoError(h.Get(ctx, b, 500, got))
			r.EqualValues(7, got[0], "it is the memory itself")
		}
		r.NoError(h.Flush(ctx))
		r.NoError(h.Put(ctx, b, 1000, nil))
		r.NoError(h.Free(b))
	}, rpipe.WithName("cache"))
}

func TestBlocksOfAHeapThatAreGoneAreStale(t *testing.T) {
	eachHeap(t, func(ctx context.Context, r *testjob.Rank, h *rpipe.Heap[int64]) {
		b, err := h.Alloc(ctx, 8)
		r.NoError(err)
		r.NoError(h.Free(b))
		again, err := h.Alloc(ctx, 8)
		r.NoError(err)
		r.Equal(b.Addr().Offset(), again.Addr().Offset(), "all of the heap is one block")
		r.NotEqual(b.Addr(), again.Addr())
		one := []int64{1}
		r.ErrorIs(h.Put(ctx, b, 0, one), rpipe.ErrStale)
		r.ErrorIs(h.Get(ctx, b, 0, one), rpipe.ErrStale)
		r.ErrorIs(h.Free(b), rpipe.ErrStale)
		r.ErrorIs(h.Free(rpipe.Remote[int64]{}), rpipe.ErrForeign)
		for _, index := range []int{-1, 8, math.MaxInt, math.MinInt} {
			r.ErrorIs(h.Put(ctx, again, index, one), runtime.ErrRange)
			r.ErrorIs(h.Get(ctx, again, index, one), runtime.ErrRange)
		}
		_, err = h.Alloc(ctx, 0)
		r.ErrorIs(err, rpipe.ErrFull)
		r.ErrorContains(err, "WithHeap")
		_, err = h.Alloc(ctx, 9)
		r.ErrorIs(err, rpipe.ErrTooLarge)
		_, err = h.Alloc(ctx, -1)
		r.ErrorIs(err, runtime.ErrRange)
		r.Equal(64, h.Stats().Used)
		r.NoError(h.Free(again))
		r.NoError(h.Close(ctx))
		_, err = h.Alloc(ctx, 1)
		r.ErrorIs(err, rpipe.ErrClosed)
		r.ErrorIs(h.Free(again), rpipe.ErrClosed)
		r.ErrorIs(h.Flush(ctx), rpipe.ErrClosed)
	}, rpipe.WithHeap(64))
}

// A random program on a heap agrees with a map.
func TestARandomProgramOnAHeap(t *testing.T) {
	for seed, policy := range policies {
		eachHeap(t, func(ctx context.Context, r *testjob.Rank, h *rpipe.Heap[int64]) {
			randomHeap(ctx, r, h, rand.New(rand.NewPCG(uint64(seed), 5)))
		}, rpipe.WithHeap(16<<10), rpipe.WithPolicy(policy), rpipe.WithBlocks(40))
	}
}

func randomHeap(ctx context.Context, r *testjob.Rank, h *rpipe.Heap[int64], rnd *rand.Rand) {
	type entry struct {
		b    rpipe.Remote[int64]
		want []int64
	}
	var model []entry
	used := 0
	for range 600 {
		k := rnd.IntN(len(model) + 1)
		switch op := rnd.IntN(4); {
		case op == 0 || k == len(model):
			n := rnd.IntN(200)
			b, err := h.Alloc(ctx, n)
			if errors.Is(err, rpipe.ErrFull) {
				continue
			}
			r.NoError(err)
			e := entry{b, make([]int64, n)}
			r.NoError(h.Put(ctx, b, 0, e.want))
			model, used = append(model, e), used+8*n
		case op == 1:
			r.NoError(h.Free(model[k].b))
			used -= 8 * len(model[k].want)
			model = slices.Delete(model, k, k+1)
		case op == 2:
			e := model[k]
			from := rnd.IntN(len(e.want) + 1)
			part := e.want[from : from+rnd.IntN(len(e.want)-from+1)]
			for i := range part {
				part[i] = rnd.Int64()
			}
			r.NoError(h.Put(ctx, e.b, from, part))
		default:
			got := make([]int64, len(model[k].want))
			r.NoError(h.Get(ctx, model[k].b, 0, got))
			r.Equal(model[k].want, got)
		}
		stats := h.Stats()
		r.Equal([2]int{len(model), used}, [2]int{stats.Blocks, stats.Payload})
	}
}

func TestGoroutinesShareAHeap(t *testing.T) {
	eachHeap(t, func(ctx context.Context, r *testjob.Rank, h *rpipe.Heap[int64]) {
		const goroutines = 8
		done := make(chan error, goroutines)
		for g := range int64(goroutines) {
			go func() {
				done <- func() error { // all of them connect
					for i := range int64(20) {
						b, err := h.Alloc(ctx, 10)
						if err != nil {
							return err
						}
						got := make([]int64, 10)
						want := slices.Repeat([]int64{g*100 + i}, 10)
						if err := errors.Join(h.Put(ctx, b, 0, want), h.Get(ctx, b, 0, got), h.Free(b)); err != nil {
							return err
						}
						if !slices.Equal(want, got) {
							return fmt.Errorf("put %v, got %v", want, got)
						}
					}
					return nil
				}()
			}()
		}
		for range goroutines {
			r.NoError(<-done)
		}
	})
}

func TestAnOperationOnAHeapIsOneRequestAndNoneOnMappedMemory(t *testing.T) {
	for _, c := range []testjob.Config{queued, mapped} {
		var traced *trace.Provider
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			s, err := rpipe.ServeHeap(ctx, r.World, 0)
			r.NoError(err)
			h, err := rpipe.OpenHeap[int64](ctx, r.World, 0)
			r.NoError(err)
			first, err := h.Alloc(ctx, 1)
			r.NoError(err)
			values := make([]int64, 100)
			cost := func(f func()) trace.Counts {
				traced.Reset()
				f()
				return traced.Snapshot().Total
			}
			one := uint64(0)
			if c.Queued {
				one = 1
			}
			var b rpipe.Remote[int64]
			none := cost(func() { b, err = h.Alloc(ctx, 100) })
			r.NoError(err)
			r.Zero(none.Requests(), "Alloc asks nobody")
			put := cost(func() { r.NoError(h.Put(ctx, b, 0, values)) })
			r.Equal([2]uint64{one, one}, [2]uint64{put.Requests(), put.Posted[driver.OpWrite]})
			get := cost(func() { r.NoError(h.Get(ctx, b, 0, values)) })
			r.Equal([2]uint64{one, one}, [2]uint64{get.Requests(), get.Posted[driver.OpRead]})
			none = cost(func() { r.NoError(errors.Join(h.Free(b), h.Free(first))) })
			r.Zero(none.Requests(), "Free asks nobody")
			if !testjob.Race {
				r.Zero(testing.AllocsPerRun(300, func() {
					b, _ := h.Alloc(ctx, 100)
					_ = h.Put(ctx, b, 0, values)
					_ = h.Get(ctx, b, 0, values)
					_ = h.Free(b)
				}))
			}
			r.NoError(h.Close(ctx))
			r.NoError(s.Wait(ctx))
			r.NoError(s.Close(ctx))
		}, runtime.WithWrap(func(p driver.Provider) driver.Provider {
			traced = trace.New(p)
			return traced
		}))
	}
}

func TestAServerThatClosesEarlyIsAnErrorAtTheClient(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for link, over := range links {
			t.Run(link, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					over(func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) { loseServer(ctx, r, opts) })(ctx, r, opts(rpipe.WithHeap(4096)))
				})
			})
		}
	})
}

func opts(o ...rpipe.Option) []rpipe.Option { return o }

func loseServer(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
	if r.Me == 1 {
		s, err := rpipe.ServeHeap(ctx, r.World, 0, opts...)
		r.NoError(err)
		waiting := make(chan error, 1)
		go func() { waiting <- s.Wait(ctx) }()
		r.NoError(r.World.Barrier(ctx))
		r.NoError(s.Close(ctx))
		r.ErrorIs(<-waiting, rpipe.ErrClosed)
		r.ErrorIs(s.Wait(ctx), rpipe.ErrClosed)
		r.NoError(s.Close(ctx))
		r.NoError(r.World.Barrier(ctx))
		return
	}
	h, err := rpipe.OpenHeap[int64](ctx, r.World, 1, opts...)
	r.NoError(err)
	b, err := h.Alloc(ctx, 10)
	r.NoError(err)
	r.NoError(h.Put(ctx, b, 0, []int64{1}))
	r.NoError(r.World.Barrier(ctx))
	for err == nil {
		err = h.Put(ctx, b, 0, []int64{2})
	}
	r.ErrorIs(err, rpipe.ErrClosed)
	r.ErrorContains(err, "by the server")
	_, err = h.Alloc(ctx, 1)
	r.ErrorIs(err, rpipe.ErrClosed)
	r.NoError(h.Close(ctx))
	r.NoError(r.World.Barrier(ctx))
}

func TestEndsOfAHeapThatAreNeverUsedClose(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				h, err := rpipe.OpenHeap[byte](ctx, r.World, 1, rpipe.WithName("client first"))
				r.NoError(err)
				r.NoError(h.Close(ctx))
				r.NoError(r.World.Barrier(ctx))
				h, err = rpipe.OpenHeap[byte](ctx, r.World, 1, rpipe.WithName("server first"))
				r.NoError(err)
				_, err = h.Alloc(ctx, 1)
				r.ErrorIs(err, rpipe.ErrClosed)
				r.NoError(h.Close(ctx))
				return
			}
			s, err := rpipe.ServeHeap(ctx, r.World, 0, rpipe.WithName("server first"))
			r.NoError(err)
			r.NoError(s.Close(ctx))
			r.NoError(r.World.Barrier(ctx))
			s, err = rpipe.ServeHeap(ctx, r.World, 0, rpipe.WithName("client first"))
			r.NoError(err)
			r.NoError(s.Wait(ctx))
			r.NoError(s.Close(ctx))
		})
	})
}

func TestEndsOfAHeapThatDifferSaySo(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			var err error
			if r.Me == 0 {
				h, openErr := rpipe.OpenHeap[byte](ctx, r.World, 1, rpipe.WithHeap(640))
				r.NoError(openErr)
				_, err = h.Alloc(ctx, 1)
				defer func() { r.NoError(h.Close(ctx)) }()
			} else {
				s, openErr := rpipe.ServeHeap(ctx, r.World, 0, rpipe.WithHeap(6400))
				r.NoError(openErr)
				err = s.Wait(ctx)
				defer func() { r.NoError(s.Close(ctx)) }()
			}
			r.ErrorIs(err, runtime.ErrMismatch)
			r.ErrorContains(err, "a heap of 640 bytes")
			r.ErrorContains(err, "a heap of 6400 bytes")
			r.NoError(r.World.Barrier(ctx), "both have seen it")
		})
	})
	mapped.Run(t, func(ctx context.Context, r *testjob.Rank) {
		_, err := rpipe.OpenHeap[string](ctx, r.World, 0)
		r.ErrorIs(err, rpipe.ErrType)
		_, err = rpipe.OpenHeap[int](ctx, r.World, 1)
		r.ErrorIs(err, runtime.ErrRange)
		_, err = rpipe.ServeHeap(ctx, nil, 0)
		r.ErrorIs(err, runtime.ErrTeam)
		_, err = rpipe.ServeHeap(ctx, r.World, 0, rpipe.WithHeap(1<<30))
		r.ErrorIs(err, runtime.ErrExhausted)
	})
}

func TestTheDeathOfEitherEndOfAHeap(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for _, dies := range []int{0, 1} {
			t.Run([]string{"client", "server"}[dies], func(t *testing.T) {
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					if r.Me == 1 {
						s, err := rpipe.ServeHeap(ctx, r.World, 0)
						r.NoError(err)
						leave(ctx, r)
						if dies == 1 {
							r.Die()
						}
						r.ErrorIs(s.Wait(context.WithoutCancel(ctx)), runtime.ErrRankDead)
						r.NoError(s.Close(ctx))
						return
					}
					h, err := rpipe.OpenHeap[int](ctx, r.World, 1)
					r.NoError(err)
					b, err := h.Alloc(ctx, 1)
					r.NoError(err)
					leave(ctx, r)
					if dies == 0 {
						r.Die()
					}
					ctx = context.WithoutCancel(ctx)
					for err == nil {
						err = errors.Join(h.Put(ctx, b, 0, []int{1}), h.Flush(ctx))
					}
					r.ErrorIs(err, runtime.ErrRankDead)
					_, err = h.Alloc(ctx, 1)
					r.ErrorIs(err, runtime.ErrRankDead)
					r.NoError(h.Close(ctx))
				})
				require.ErrorContains(t, err, "ended without returning")
				require.NotErrorIs(t, err, testjob.ErrWatchdog)
			})
		}
	})
}

// TestMemoryOfHeapsComesBack opens and closes heaps that would not fit together.
func TestMemoryOfHeapsComesBack(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for range 20 {
				served(ctx, r, func(ctx context.Context, r *testjob.Rank, h *rpipe.Heap[int64]) {
					b, err := h.Alloc(ctx, 1)
					r.NoError(err)
					r.NoError(h.Put(ctx, b, 0, []int64{1}))
				}, opts(rpipe.WithHeap(32<<20)))
				r.NoError(r.World.Barrier(ctx))
			}
			r.Less(used(r.World), int64(40<<20), "but the last one's")
		})
	})
}

// bodiesOfHeaps are run as processes, of which the server is killed.
func bodiesOfHeaps() map[string]testjob.Body {
	return map[string]testjob.Body{"a server is killed": func(ctx context.Context, r *testjob.Rank) {
		if r.Me == 1 {
			_, err := rpipe.ServeHeap(ctx, r.World, 0)
			r.NoError(err)
			leave(ctx, r)
			r.Die()
		}
		h, err := rpipe.OpenHeap[int](ctx, r.World, 1)
		r.NoError(err)
		b, err := h.Alloc(ctx, 1000)
		r.NoError(err)
		leave(ctx, r)
		ctx = context.WithoutCancel(ctx)
		for err == nil {
			err = errors.Join(h.Put(ctx, b, 0, make([]int, 1000)), h.Flush(ctx))
		}
		r.ErrorIs(err, runtime.ErrRankDead)
		_, err = h.Alloc(ctx, 1)
		r.ErrorIs(err, runtime.ErrRankDead)
		clear(b.Mem()) // never faults
		r.NoError(h.Close(ctx))
		fmt.Println("the client lives")
	}}
}

func TestAClientOutlivesItsServersProcess(t *testing.T) {
	for _, j := range testjob.Processes(2) {
		for name := range bodiesOfHeaps() {
			t.Run(j.String(), func(t *testing.T) {
				out := j.Try(t, name)
				require.NotZero(t, out.ExitCode)
				require.Contains(t, out.Output, "the client lives", out.Summary())
			})
		}
	}
}
