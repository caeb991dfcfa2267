package farheap_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/farheap"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/trace"
)

// eachHeap runs f with a heap of rank 0 at rank 1, on every transport and over every link. Rank 1
// does nothing but serve the heap. Both close in the end.
func eachHeap(t *testing.T, f func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]), opts ...farheap.Option) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for memory, over := range memories {
			t.Run(memory, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					over(func(ctx context.Context, r *testjob.Rank, opts []farheap.Option) { served(ctx, r, f, opts) })(ctx, r, opts)
				})
			})
		}
	})
}

func served(ctx context.Context, r *testjob.Rank, f func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]), opts []farheap.Option) {
	if r.Me == 0 {
		h, err := farheap.Open[int64](ctx, r.World, 1, opts...)
		r.NoError(err)
		f(ctx, r, h)
		r.NoError(h.Close(ctx))
		return
	}
	s, err := farheap.Serve(ctx, r.World, 0, opts...)
	r.NoError(err)
	r.NoError(s.Wait(ctx))
	r.NoError(s.Close(ctx))
}

func TestGetReturnsBytesOfPut(t *testing.T) {
	eachHeap(t, func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]) {
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
	}, farheap.WithName("cache"))
}

func TestServerNamesItsHeapAsTheClientDoes(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		for incarnation := range 2 {
			want := fmt.Sprintf("cache#%d", incarnation)
			switch r.Me {
			case 0:
				h, err := farheap.Open[byte](ctx, r.World, 1, farheap.WithName("cache"))
				r.NoError(err)
				r.Equal(want, h.Name())
				r.NoError(h.Close(ctx))
			case 1:
				s, err := farheap.Serve(ctx, r.World, 0, farheap.WithName("cache"))
				r.NoError(err)
				r.Equal(want, s.Name())
				r.NoError(s.Close(ctx))
			}
		}
	})
}

// TestHeapRefusesLargeBlocksAheadOfItsServer has no server.
func TestHeapRefusesLargeBlocksAheadOfItsServer(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		h, err := farheap.Open[byte](ctx, r.World, 0, farheap.WithHeap(4096))
		r.NoError(err)
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err = h.Alloc(ended, 4097)
		r.ErrorIs(err, rpipe.ErrTooLarge)
		_, err = h.Alloc(ended, 4096)
		r.ErrorContains(err, "while waiting for rank 0 to open its end")
		r.NoError(h.Close(ctx))
		_, err = h.Alloc(ctx, 4097)
		r.ErrorIs(err, rpipe.ErrClosed)
	})
}

func TestHeapRefusesStaleBlocks(t *testing.T) {
	eachHeap(t, func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]) {
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
		r.ErrorIs(h.Free(farheap.Remote[int64]{}), rpipe.ErrForeign)
		for _, index := range []int{-1, 8, math.MaxInt, math.MinInt} {
			r.ErrorIs(h.Put(ctx, again, index, one), runtime.ErrRange)
			r.ErrorIs(h.Get(ctx, again, index, one), runtime.ErrRange)
		}
		_, err = h.Alloc(ctx, 0)
		r.ErrorIs(err, farheap.ErrFull)
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
	}, farheap.WithHeap(64))
}

// A random program on a heap agrees with a map.
func TestHeapAgreesWithMapInRandomProgram(t *testing.T) {
	for seed, policy := range []rpipe.Policy{rpipe.NextFit{}, rpipe.FirstFit{}, rpipe.BestFit{}, rpipe.WorstFit{}} {
		eachHeap(t, func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]) {
			randomHeap(ctx, r, h, rand.New(rand.NewPCG(uint64(seed), 5)))
		}, farheap.WithHeap(16<<10), farheap.WithPolicy(policy), farheap.WithBlocks(40))
	}
}

func randomHeap(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64], rnd *rand.Rand) {
	type entry struct {
		b    farheap.Remote[int64]
		want []int64
	}
	var model []entry
	used := 0
	for range testwatch.Rounds(200) {
		k := rnd.IntN(len(model) + 1)
		switch op := rnd.IntN(4); {
		case op == 0 || k == len(model):
			n := rnd.IntN(200)
			b, err := h.Alloc(ctx, n)
			if errors.Is(err, farheap.ErrFull) {
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

func TestGoroutinesShareHeap(t *testing.T) {
	eachHeap(t, func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]) {
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

func TestHeapPostsOneRequestOrNoneWhenMapped(t *testing.T) {
	for _, c := range []testjob.Config{pipetest.Queued, pipetest.Mapped} {
		var traced *trace.Provider
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			s, err := farheap.Serve(ctx, r.World, 0)
			r.NoError(err)
			h, err := farheap.Open[int64](ctx, r.World, 0)
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
			var b farheap.Remote[int64]
			none := cost(func() { b, err = h.Alloc(ctx, 100) })
			r.NoError(err)
			r.Zero(none.Requests(), "Alloc sends no request")
			put := cost(func() { r.NoError(h.Put(ctx, b, 0, values)) })
			r.Equal([2]uint64{one, one}, [2]uint64{put.Requests(), put.Posted[driver.OpWrite]})
			get := cost(func() { r.NoError(h.Get(ctx, b, 0, values)) })
			r.Equal([2]uint64{one, one}, [2]uint64{get.Requests(), get.Posted[driver.OpRead]})
			none = cost(func() { r.NoError(errors.Join(h.Free(b), h.Free(first))) })
			r.Zero(none.Requests(), "Free sends no request")
			if !testwatch.Race {
				r.Zero(r.Allocs(300, func() {
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
