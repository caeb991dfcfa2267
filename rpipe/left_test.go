package rpipe_test

import (
	"context"
	"errors"
	"io"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/runtime"
)

// left fails unless err says that a rank has returned from its body.
func left(r *testjob.Rank, rank int, err error) {
	r.ErrorIs(err, runtime.ErrClosed)
	var e *runtime.RankError
	r.ErrorAs(err, &e)
	r.Equal(rank, e.Rank)
	r.ErrorContains(err, "its body returned")
}

// returns are the ways in which rank 1 returns without closing its end of a pipe. Each has the
// calls of rank 0 that wait for it.
var returns = map[string]struct {
	stays, returns pipeBody
}{
	"reader behind blocks": {
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			rd, err := rpipe.OpenReader[int](ctx, r.World, 1, opts...)
			r.NoError(err)
			got := make([]int, 1)
			for i := range 3 {
				_, err := rd.Recv(ctx, got)
				r.NoError(err)
				r.Equal(i, got[0])
			}
			_, err = rd.Recv(ctx, make([]int, 100))
			left(r, 1, err)
			r.NoError(rd.Close(ctx))
		},
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			w, err := rpipe.OpenWriter[int](ctx, r.World, 0, opts...)
			r.NoError(err)
			for i := range 3 {
				r.NoError(w.Send(ctx, []int{i}))
			}
		},
	},
	"writer": {
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			w, err := rpipe.OpenWriter[int](ctx, r.World, 1, opts...)
			r.NoError(err)
			for err == nil {
				err = w.Send(ctx, make([]int, 100))
			}
			left(r, 1, err)
		},
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			rd, err := rpipe.OpenReader[int](ctx, r.World, 0, opts...)
			r.NoError(err)
			_, err = rd.Recv(ctx, make([]int, 100))
			r.NoError(err)
		},
	},
	"reader of a pipe that is never opened": {
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			rd, err := rpipe.OpenReader[int](ctx, r.World, 1, opts...)
			r.NoError(err)
			_, err = rd.Recv(ctx, make([]int, 100))
			left(r, 1, err)
		},
		func(context.Context, *testjob.Rank, []rpipe.Option) {},
	},
	"writer of a pipe that is never opened": {
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			w, err := rpipe.OpenWriter[int](ctx, r.World, 1, opts...)
			r.NoError(err)
			left(r, 1, w.Send(ctx, []int{1}))
		},
		func(context.Context, *testjob.Rank, []rpipe.Option) {},
	},
	"reader of a pipe that is never opened, which tells of arrivals": {
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			rd, err := rpipe.OpenReader[int](ctx, r.World, 1, opts...)
			r.NoError(err)
			arrivals := rd.Arrivals() // looks for the writer
			r.NoError(r.World.Barrier(ctx))
			select {
			case _, arrived := <-arrivals:
				r.False(arrived)
			case <-ctx.Done():
				r.NoError(context.Cause(ctx))
			}
			_, err = rd.Recv(ctx, nil)
			left(r, 1, err)
		},
		func(ctx context.Context, r *testjob.Rank, _ []rpipe.Option) { r.NoError(r.World.Barrier(ctx)) },
	},
	"fan-in of pipes of which one is never opened": {
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			in, err := fan.OpenIn[int](ctx, r.World, []int{1, 1}, opts...)
			r.NoError(err)
			b, _, err := in.Read(ctx)
			r.NoError(err)
			r.NoError(in.Free(b))
			for range 2 { // looks for the writers
				_, _, err = in.TryRead()
				r.ErrorIs(err, rpipe.ErrWouldBlock)
			}
			r.NoError(r.World.Barrier(ctx))
			_, _, err = in.Read(ctx)
			left(r, 1, err)
			_, _, err = in.Read(ctx)
			r.ErrorIs(err, io.EOF)
		},
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			w, err := rpipe.OpenWriter[int](ctx, r.World, 0, opts...)
			r.NoError(err)
			r.NoError(w.Send(ctx, []int{1}))
			r.NoError(r.World.Barrier(ctx))
			r.NoError(w.CloseWrite(ctx))
		},
	},
	"reader that tries": {
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			rd, err := rpipe.OpenReader[int](ctx, r.World, 1, opts...)
			r.NoError(err)
			err = rpipe.ErrWouldBlock
			for errors.Is(err, rpipe.ErrWouldBlock) {
				_, err = rd.TryRead()
				goruntime.Gosched()
				r.NoError(ctx.Err())
			}
			left(r, 1, err)
		},
		func(context.Context, *testjob.Rank, []rpipe.Option) {},
	},
	"writer that tries": {
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			w, err := rpipe.OpenWriter[int](ctx, r.World, 1, opts...)
			r.NoError(err)
			for err == nil || errors.Is(err, rpipe.ErrWouldBlock) {
				err = w.TrySend([]int{1})
				goruntime.Gosched()
				r.NoError(ctx.Err())
			}
			left(r, 1, err)
		},
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			_, err := rpipe.OpenReader[int](ctx, r.World, 0, opts...)
			r.NoError(err)
		},
	},
	"reader of a pipe that is closed, beside one that is not": {
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			rd, err := rpipe.OpenReader[int](ctx, r.World, 1, opts...)
			r.NoError(err)
			open, err := rpipe.OpenReader[int](ctx, r.World, 1, append(opts, rpipe.WithName("open"))...)
			r.NoError(err)
			_, err = open.Recv(ctx, make([]int, 1))
			left(r, 1, err)
			_, err = rd.Recv(ctx, make([]int, 100))
			r.NoError(err)
			_, err = rd.Recv(ctx, make([]int, 100))
			r.ErrorIs(err, io.EOF)
		},
		func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
			w, err := rpipe.OpenWriter[int](ctx, r.World, 0, opts...)
			r.NoError(err)
			_, err = rpipe.OpenWriter[int](ctx, r.World, 0, append(opts, rpipe.WithName("open"))...)
			r.NoError(err)
			r.NoError(w.Send(ctx, []int{1}))
			r.NoError(w.CloseWrite(ctx))
		},
	},
}

func TestCallsOnPipesEndWhenThePeersBodyReturns(t *testing.T) {
	for name, pair := range returns {
		for part, k := range kinds {
			opts := append(k.opts(), rpipe.WithWidth(4), rpipe.WithHeap(64<<10))
			for _, c := range testjob.Share(t.Name()+name, 2, part, len(kinds)) {
				t.Run(c.String()+"/"+name+"/"+k.name(), func(t *testing.T) {
					t.Parallel() // a rank sends a request after it has waited for 200 ms
					c.Run(t, func(ctx context.Context, r *testjob.Rank) {
						body := pair.stays
						if r.Me == 1 {
							body = pair.returns
						}
						opts := slices.Clone(opts)
						if k.link == "window" {
							opts = append(opts, rpipe.WithWindow(pool(ctx, r, 2))) // the job frees it: Close is collective
						}
						body(ctx, r, opts)
					})
				})
			}
		}
	}
}

// TestPulledBlocksOfARankThatReturnedWaitForMemory has a block find no room at the reader. The
// writer's rank returns before the reader frees another one.
func TestPulledBlocksOfARankThatReturnedWaitForMemory(t *testing.T) {
	const n = 3 << 10 // elements of a block: two fit
	for _, c := range []testjob.Config{{Provider: "loop", Queued: true, Ranks: 2}, {Provider: "tcp", Ranks: 2}} {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				opts := []rpipe.Option{rpipe.WithPull(), rpipe.WithHeap(64 << 10)}
				if r.Me == 1 {
					w, err := rpipe.OpenWriter[int](ctx, r.World, 0, opts...)
					r.NoError(err)
					for i := range 3 {
						r.NoError(w.Send(ctx, append([]int{i}, make([]int, n-1)...)))
					}
					return
				}
				rd, err := rpipe.OpenReader[int](ctx, r.World, 1, opts...)
				r.NoError(err)
				var held [2]rpipe.Block[int]
				for i := range held {
					held[i], err = rd.Read(ctx)
					r.NoError(err)
				}
				never, err := rpipe.OpenReader[int](ctx, r.World, 1, rpipe.WithName("never opened"))
				r.NoError(err)
				_, err = never.Recv(ctx, nil)
				left(r, 1, err) // rank 1 has returned
				_, err = rd.TryRead()
				r.ErrorIs(err, rpipe.ErrWouldBlock)
				freed := make(chan error, 1)
				go func() { freed <- rd.Free(held[0]) }()
				b, err := rd.Read(ctx)
				r.NoError(err)
				r.NoError(<-freed)
				r.Equal(2, b.Mem()[0])
				_, err = rd.Recv(ctx, nil)
				left(r, 1, err)
			})
		})
	}
}

// TestFanInTellsPipesOfOneRankApart has a rank close one of its pipes and return without closing
// the other.
func TestFanInTellsPipesOfOneRankApart(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 1 {
				for i := range 2 {
					w, err := rpipe.OpenWriter[int](ctx, r.World, 0)
					r.NoError(err)
					r.NoError(w.Send(ctx, []int{i + 1}))
					if i == 0 {
						r.NoError(w.CloseWrite(ctx))
					}
				}
				return
			}
			in, err := fan.OpenIn[int](ctx, r.World, []int{1, 1})
			r.NoError(err)
			in.ReportEnds()
			sum, ends := 0, []error{nil, nil}
			for ends[0] == nil || ends[1] == nil {
				b, from, err := in.Read(ctx)
				if err != nil {
					r.NoError(ends[from], "a second end of the same pipe")
					ends[from] = err
					continue
				}
				sum += b.Mem()[0]
				r.NoError(in.Free(b))
			}
			r.Equal(3, sum)
			r.ErrorIs(ends[0], io.EOF)
			left(r, 1, ends[1])
		})
	})
}

// TestFanInReadsAllBlocksAndThenErrorsOfRanksThatReturned has one writer close its pipe and the
// other one return without that.
func TestFanInReadsAllBlocksAndThenErrorsOfRanksThatReturned(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me > 0 {
				w, err := rpipe.OpenWriter[int](ctx, r.World, 0)
				r.NoError(err)
				r.NoError(w.Send(ctx, []int{r.Me}))
				if r.Me == 1 {
					r.NoError(w.CloseWrite(ctx))
				}
				return
			}
			in, err := fan.OpenIn[int](ctx, r.World, []int{1, 2})
			r.NoError(err)
			sum, errs := 0, 0
			for {
				b, from, err := in.Read(ctx)
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					left(r, 2, err)
					r.Equal(1, from)
					errs++
					continue
				}
				sum += b.Mem()[0]
				r.NoError(in.Free(b))
			}
			r.Equal(3, sum)
			r.Equal(1, errs)
		})
	})
}
