package farheap_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/farheap"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

func TestClientReturnsErrClosedAfterServerCloses(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for memory, over := range memories {
			t.Run(memory, func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					over(func(ctx context.Context, r *testjob.Rank, opts []farheap.Option) { loseServer(ctx, r, opts) })(ctx, r, options(farheap.WithHeap(4096)))
				})
			})
		}
	})
}

func loseServer(ctx context.Context, r *testjob.Rank, opts []farheap.Option) {
	if r.Me == 1 {
		s, err := farheap.Serve(ctx, r.World, 0, opts...)
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
	h, err := farheap.Open[int64](ctx, r.World, 1, opts...)
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

func TestUnusedClientAndServerClose(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				h, err := farheap.Open[byte](ctx, r.World, 1, farheap.WithName("client first"))
				r.NoError(err)
				r.NoError(h.Close(ctx))
				r.NoError(r.World.Barrier(ctx))
				h, err = farheap.Open[byte](ctx, r.World, 1, farheap.WithName("server first"))
				r.NoError(err)
				_, err = h.Alloc(ctx, 1)
				r.ErrorIs(err, rpipe.ErrClosed)
				r.NoError(h.Close(ctx))
				return
			}
			s, err := farheap.Serve(ctx, r.World, 0, farheap.WithName("server first"))
			r.NoError(err)
			r.NoError(s.Close(ctx))
			r.NoError(r.World.Barrier(ctx))
			s, err = farheap.Serve(ctx, r.World, 0, farheap.WithName("client first"))
			r.NoError(err)
			r.NoError(s.Wait(ctx))
			r.NoError(s.Close(ctx))
		})
	})
}

// TestWaitEndsWithItsContextBesideAnotherWait has one goroutine wait to the end, and a second one give
// up.
func TestWaitEndsWithItsContextBesideAnotherWait(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				h, err := farheap.Open[byte](ctx, r.World, 1)
				r.NoError(err)
				r.NoError(r.World.Barrier(ctx)) // rank 1 has given up
				r.NoError(h.Close(ctx))
				return
			}
			s, err := farheap.Serve(ctx, r.World, 0)
			r.NoError(err)
			first := make(chan error, 1)
			go func() { first <- s.Wait(ctx) }()
			r.Eventually(s.Waits, testwatch.Patience(), time.Millisecond)
			short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			r.ErrorIs(s.Wait(short), context.DeadlineExceeded)
			r.NoError(r.World.Barrier(ctx))
			r.NoError(<-first)
			r.NoError(s.Close(ctx))
		})
	})
}

func TestMismatchedClientAndServerReturnErrMismatch(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			var err error
			if r.Me == 0 {
				h, openErr := farheap.Open[byte](ctx, r.World, 1, farheap.WithHeap(640))
				r.NoError(openErr)
				_, err = h.Alloc(ctx, 1)
				defer func() { r.NoError(h.Close(ctx)) }()
			} else {
				s, openErr := farheap.Serve(ctx, r.World, 0, farheap.WithHeap(6400))
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
		_, err := farheap.Open[string](ctx, r.World, 0)
		r.ErrorIs(err, rpipe.ErrType)
		_, err = farheap.Open[int](ctx, r.World, 1)
		r.ErrorIs(err, runtime.ErrRange)
		_, err = farheap.Serve(ctx, nil, 0)
		r.ErrorIs(err, runtime.ErrTeam)
		_, err = farheap.Serve(ctx, r.World, 0, farheap.WithHeap(1<<30))
		r.ErrorIs(err, runtime.ErrExhausted)
	})
}

func TestClientAndServerReturnErrRankDead(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for _, dies := range []int{0, 1} {
			t.Run([]string{"client", "server"}[dies], func(t *testing.T) {
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					if r.Me == 1 {
						s, err := farheap.Serve(ctx, r.World, 0)
						r.NoError(err)
						pipetest.Leave(ctx, r)
						if dies == 1 {
							r.Die()
						}
						r.ErrorIs(s.Wait(context.WithoutCancel(ctx)), runtime.ErrRankDead)
						r.NoError(s.Close(ctx))
						return
					}
					h, err := farheap.Open[int](ctx, r.World, 1)
					r.NoError(err)
					b, err := h.Alloc(ctx, 1)
					r.NoError(err)
					pipetest.Leave(ctx, r)
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
				require.NotErrorIs(t, err, testwatch.ErrStuck)
			})
		}
	})
}

// TestClosedHeapsReleaseMemory opens and closes heaps, and waits until the last ends have
// heard from their peers.
func TestClosedHeapsReleaseMemory(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for range 20 {
				served(ctx, r, func(ctx context.Context, r *testjob.Rank, h *farheap.Heap[int64]) {
					b, err := h.Alloc(ctx, 1)
					r.NoError(err)
					r.NoError(h.Put(ctx, b, 0, []int64{1}))
				}, options(farheap.WithHeap(32<<20)))
				r.NoError(r.World.Barrier(ctx))
			}
			for pipetest.Used(r.World) >= 32<<20 {
				r.NoError(ctx.Err(), "a heap still takes memory")
				team.Of(r.World).Progress()
				time.Sleep(100 * time.Microsecond)
			}
			r.NoError(r.World.Barrier(ctx), "no heap is left")
		})
	})
}

// bodiesOfHeaps are run as processes, of which the server is killed.
func bodiesOfHeaps() map[string]testjob.Body {
	return map[string]testjob.Body{"a server is killed": func(ctx context.Context, r *testjob.Rank) {
		if r.Me == 1 {
			_, err := farheap.Serve(ctx, r.World, 0)
			r.NoError(err)
			pipetest.Leave(ctx, r)
			r.Die()
		}
		h, err := farheap.Open[int](ctx, r.World, 1)
		r.NoError(err)
		b, err := h.Alloc(ctx, 1000)
		r.NoError(err)
		pipetest.Leave(ctx, r)
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

func TestClientOutlivesServerProcess(t *testing.T) {
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
