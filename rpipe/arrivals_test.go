package rpipe_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// selected reads by select until the end, with one TryRead after each value, and
// hands each block to f.
func selected[T any](ctx context.Context, r *testjob.Rank, rd *rpipe.Reader[T], f func(b rpipe.Block[T])) error {
	arrivals := rd.Arrivals()
	for {
		select {
		case <-arrivals:
		case <-ctx.Done():
			r.NoError(context.Cause(ctx))
		}
		b, err := rd.TryRead()
		if errors.Is(err, rpipe.ErrWouldBlock) {
			continue
		}
		if err != nil {
			return err
		}
		f(b)
		r.NoError(rd.Free(b))
	}
}

func TestArrivalsReportEachBlock(t *testing.T) {
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		rounds := pipetest.Fewer(400)
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[int]) {
			for i := range rounds {
				r.NoError(w.Send(ctx, []int{i}))
				if i%50 == 0 { // time for the reader to find nothing
					r.NoError(w.Flush(ctx))
				}
			}
		}, func(rd *rpipe.Reader[int]) {
			n := 0
			r.Equal(io.EOF, selected(ctx, r, rd, func(b rpipe.Block[int]) {
				r.Equal(n, b.Mem()[0])
				n++
			}))
			r.Equal(rounds, n)
			_, open := <-rd.Arrivals()
			r.False(open, "nothing arrives behind the end")
		}, append(opts, rpipe.WithWidth(5))...)
	})
}

// One value is good for any number of reads.
func TestOneArrivalAllowsManyReads(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			const rounds = 400
			pipetest.Ends(ctx, r, func(w *rpipe.Writer[int]) {
				for i := range rounds {
					r.NoError(w.Send(ctx, []int{i}))
				}
			}, func(rd *rpipe.Reader[int]) {
				n := 0
				for range rd.Arrivals() {
					for {
						b, err := rd.TryRead()
						if err != nil {
							break
						}
						r.Equal(n, b.Mem()[0])
						r.NoError(rd.Free(b))
						n++
					}
				}
				r.Equal(rounds, n)
			}, rpipe.WithWidth(16))
		})
	})
}

func TestArrivalsReportUnreadBlockOnce(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			pipetest.Ends(ctx, r, func(w *rpipe.Writer[int]) {
				r.NoError(w.Send(ctx, []int{1}))
				r.NoError(w.Send(ctx, []int{2}))
				r.NoError(r.World.Barrier(ctx))
			}, func(rd *rpipe.Reader[int]) {
				arrivals := rd.Arrivals()
				<-arrivals
				select {
				case <-arrivals:
					r.Fail("nothing was read, and nothing new has come to the front")
				case <-time.After(20 * time.Millisecond):
				}
				_, err := rd.TryRead()
				r.NoError(err)
				<-arrivals
				_, err = rd.TryRead()
				r.NoError(err)
				r.NoError(r.World.Barrier(ctx))
			})
		})
	})
}

func TestArrivalsEndWithReader(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 1 {
				rd, err := rpipe.OpenReader[int](ctx, r.World, 0)
				r.NoError(err)
				arrivals := rd.Arrivals()
				r.Equal(arrivals, rd.Arrivals())
				r.NoError(rd.Close(ctx))
				_, open := <-arrivals
				r.False(open)
				_, open = <-rd.Arrivals()
				r.False(open)

				left, err := rpipe.OpenReader[int](ctx, r.World, 0, rpipe.WithName("left open"))
				r.NoError(err)
				_ = left.Arrivals() // ends with the job
			}
		})
	})
}

func TestArrivalsReportClosedWriter(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				w, err := rpipe.OpenWriter[int](ctx, r.World, 1)
				r.NoError(err)
				r.NoError(w.Close(ctx))
			}
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 1 {
				rd, err := rpipe.OpenReader[int](ctx, r.World, 0)
				r.NoError(err)
				r.Equal(io.EOF, selected(ctx, r, rd, func(rpipe.Block[int]) {}))
				r.NoError(rd.Close(ctx))
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

func TestArrivalsReportDeadWriter(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		_ = c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				w, err := rpipe.OpenWriter[int](ctx, r.World, 1)
				r.NoError(err)
				r.NoError(w.Send(ctx, []int{7}))
				r.NoError(w.Flush(ctx))
				r.Die()
			}
			rd, err := rpipe.OpenReader[int](ctx, r.World, 0)
			r.NoError(err)
			got := 0
			err = selected(ctx, r, rd, func(b rpipe.Block[int]) { got = b.Mem()[0] })
			r.ErrorIs(err, runtime.ErrRankDead)
			r.Equal(7, got, "what arrived is read before")
		})
	})
}

// Nothing arrives any more once the reader begins to look.
func TestArrivalsReportEarlierBlocks(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for range 50 {
				pipetest.Ends(ctx, r, func(w *rpipe.Writer[int]) {
					r.NoError(w.Send(ctx, []int{1}))
					r.NoError(w.Flush(ctx))
					r.NoError(r.World.Barrier(ctx))
				}, func(rd *rpipe.Reader[int]) {
					r.NoError(r.World.Barrier(ctx))
					select {
					case <-rd.Arrivals():
					case <-ctx.Done():
						r.NoError(context.Cause(ctx))
					}
					_, err := rd.TryRead()
					r.NoError(err)
				}, rpipe.WithHeap(64))
			}
		})
	})
}
