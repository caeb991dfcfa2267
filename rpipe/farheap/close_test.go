package farheap_test

import (
	"context"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/farheap"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// eachHeapPair runs one body at the client's rank and one at the server's.
func eachHeapPair(t *testing.T, client func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]), server func(ctx context.Context, r *testjob.Rank, s *farheap.Server)) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for memory, over := range memories {
			t.Run(memory, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					over(func(ctx context.Context, r *testjob.Rank, opts []farheap.Option) {
						if r.Me == 0 {
							h, err := farheap.Open[int64](ctx, r.World, 1, opts...)
							r.NoError(err)
							client(ctx, r, h)
							return
						}
						s, err := farheap.Serve(ctx, r.World, 0, opts...)
						r.NoError(err)
						server(ctx, r, s)
					})(ctx, r, nil)
				})
			})
		}
	})
}

// untilNone waits until no end lingers at either rank.
func untilNone(ctx context.Context, r *testjob.Rank, lingering func() int) {
	for lingering() > 0 {
		r.NoError(ctx.Err())
		team.Of(r.World).Progress()
		time.Sleep(100 * time.Microsecond)
	}
	r.NoError(r.World.Barrier(ctx), "none lingers")
}

// uses lists calls that a client may have made before an end closes.
var uses = map[string]func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]){
	"used": func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]) {
		b, err := h.Alloc(ctx, 1)
		r.NoError(err)
		r.NoError(h.Put(ctx, b, 0, []int64{1}))
	},
	"unused": func(context.Context, *testjob.Rank, *farheap.Heap[int64]) {},
}

func TestCanceledCloseOfClientReleasesServer(t *testing.T) {
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			eachHeapPair(t, func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]) {
				use(ctx, r, h)
				r.NoError(r.World.Barrier(ctx))
				time.Sleep(time.Millisecond) // the server has met this end, most times
				_ = h.Close(pipetest.Ended(ctx))
				untilNone(ctx, r, h.Lingering)
			}, func(ctx context.Context, r *testjob.Rank, s *farheap.Server) {
				r.NoError(r.World.Barrier(ctx))
				r.NoError(s.Wait(ctx))
				r.NoError(s.Close(ctx))
				untilNone(ctx, r, s.Lingering)
			})
		})
	}
}

func TestCanceledCloseOfServerReleasesClient(t *testing.T) {
	for name, use := range uses {
		t.Run(name, func(t *testing.T) {
			eachHeapPair(t, func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]) {
				use(ctx, r, h)
				r.NoError(r.World.Barrier(ctx))
				b, err := h.Alloc(ctx, 1)
				for ; err == nil; b, err = h.Alloc(ctx, 1) {
					r.NoError(h.Free(b))
				}
				r.ErrorIs(err, rpipe.ErrClosed)
				r.NoError(h.Close(ctx))
				untilNone(ctx, r, h.Lingering)
			}, func(ctx context.Context, r *testjob.Rank, s *farheap.Server) {
				r.NoError(r.World.Barrier(ctx))
				_ = s.Close(pipetest.Ended(ctx))
				untilNone(ctx, r, s.Lingering)
			})
		})
	}
}

func TestMismatchedClientAndServerReleaseMemory(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				h, err := farheap.Open[byte](ctx, r.World, 1, farheap.WithHeap(640))
				r.NoError(err)
				_, err = h.Alloc(ctx, 1)
				r.ErrorIs(err, runtime.ErrMismatch)
				r.NoError(h.Close(ctx))
				untilNone(ctx, r, h.Lingering)
				return
			}
			s, err := farheap.Serve(ctx, r.World, 0, farheap.WithHeap(6<<20))
			r.NoError(err)
			r.ErrorIs(s.Wait(ctx), runtime.ErrMismatch)
			r.NoError(s.Close(ctx))
			untilNone(ctx, r, s.Lingering)
			r.Less(pipetest.Used(r.World), int64(5<<20))
		})
	})
}
