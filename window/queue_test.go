package window_test

import (
	"context"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// through returns w for operations that q carries.
func through[T any](r *testjob.Rank, w *window.Window[T], q *window.Queue) *window.Window[T] {
	out, err := w.Through(q)
	r.NoError(err)
	return out
}

func newQueue(r *testjob.Rank) *window.Queue {
	q, err := window.NewQueue(r.World)
	r.NoError(err)
	return q
}

// Each goroutine has a queue, with all kinds of operations on two windows and a part.
func TestQueuesOfSeveralGoroutinesCarryAllOperations(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		const goroutines, rounds, run = 3, 20, 8
		before := used(r.World)
		data := allocate[int64](ctx, r, goroutines*run)
		sums := allocate[int64](ctx, r, goroutines+1)
		right, left := r.Right(), r.Left()
		var g errgroup.Group
		for i := range goroutines {
			g.Go(func() error {
				q := newQueue(r)
				d, s := through(r, data, q), through(r, sums, q)
				r.Same(d, through(r, data, q), "a second call returns the same window")
				own := partAs[int64](r, d, i*run*8, run)
				for round := range rounds {
					values := make([]int64, run)
					for j := range values {
						values[j] = int64(r.Me*1000 + i*100 + round + j)
					}
					req, err := own.StartPut(ctx, right, 0, values)
					r.NoError(err)
					r.NoError(window.AtomicAdd(ctx, s, right, i, 1))
					_, err = window.FetchAdd(ctx, s, right, goroutines, 1)
					r.NoError(err)
					r.NoError(req.Wait(ctx))
					r.NoError(q.Order())
					got := make([]int64, run)
					r.NoError(d.Get(ctx, right, i*run, got))
					r.Equal(values, got, "a read behind Order sees the put")
				}
				r.NoError(d.PutNotify(ctx, right, i*run, []int64{-1}, window.Signal{Slot: i, Value: 1}))
				r.NoError(q.FlushAll(ctx))
				return q.Close(ctx)
			})
		}
		r.NoError(g.Wait())
		for i := range goroutines {
			_, _, err := data.WaitNotify(ctx, window.Until{Slots: []int{i}, Value: 1})
			r.NoError(err)
		}
		r.NoError(r.World.Barrier(ctx))
		for i := range goroutines {
			r.EqualValues(-1, data.Local()[i*run])
			r.EqualValues(left*1000+i*100+rounds-1+run-1, data.Local()[i*run+run-1])
			r.EqualValues(rounds, sums.Local()[i])
		}
		r.EqualValues(goroutines*rounds, sums.Local()[goroutines])
		r.NoError(r.World.Barrier(ctx))
		r.NoError(data.Free(ctx))
		r.NoError(sums.Free(ctx))
		r.Equal(before, used(r.World))
	})
}

// Flush of a window through a queue completes it for readers that a barrier tells.
func TestFlushThroughAQueueBehindABarrier(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 2)
		q := newQueue(r)
		x := through(r, w, q)
		for i := range int64(30) {
			r.NoError(x.PutValue(ctx, r.Right(), 0, i))
			r.NoError(x.Flush(ctx, r.Right()))
			r.NoError(r.World.Barrier(ctx))
			r.Equal(i, w.Local()[0])
			r.NoError(r.World.Barrier(ctx))
			r.NoError(x.PutValue(ctx, r.Left(), 1, i))
			r.NoError(x.Fence(ctx))
			r.Equal(i, w.Local()[1])
			r.NoError(r.World.Barrier(ctx))
		}
		_, err := x.Lock(ctx, 0, window.Exclusive)
		r.ErrorIs(err, window.ErrPart)
		r.NoError(w.Free(ctx)) // with q open
		_, err = w.Through(q)
		r.ErrorIs(err, window.ErrFreed)
		r.ErrorIs(x.PutValue(ctx, 0, 0, 1), window.ErrFreed)
		r.NoError(q.FlushAll(ctx))
	})
}

func TestClosedQueueRefusesOperations(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 2)
		for range 300 { // more than are open at once
			q := newQueue(r)
			x := through(r, w, q)
			part := partAs[int64](r, x, 8, 1)
			r.NoError(q.Close(ctx))
			r.ErrorIs(x.PutValue(ctx, r.Right(), 0, 1), window.ErrFreed)
			r.ErrorIs(part.PutValue(ctx, r.Right(), 0, 1), window.ErrFreed)
			r.ErrorIs(x.Flush(ctx, r.Right()), window.ErrFreed)
			r.ErrorIs(q.FlushAll(ctx), window.ErrFreed)
			r.ErrorIs(q.Order(), window.ErrFreed)
			r.ErrorIs(q.Close(ctx), window.ErrFreed)
			_, err := w.Through(q)
			r.ErrorIs(err, window.ErrFreed)
		}
		for range 20 { // with connections
			q := newQueue(r)
			r.NoError(through(r, w, q).PutValue(ctx, r.Right(), 0, 7))
			r.NoError(q.Close(ctx))
		}
		r.NoError(w.Fence(ctx))
		r.EqualValues(7, w.Local()[0])
		r.NoError(r.World.Barrier(ctx))
		r.NoError(w.Free(ctx))
	})
}

// A part that begins where its window begins has the same type, but fewer elements.
func TestQueueTellsAWindowFromItsParts(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w, q := allocate[int64](ctx, r, 8), newQueue(r)
		lengths := []int{3, 8, 5}
		var routes []*window.Window[int64]
		for _, n := range lengths {
			routes = append(routes, through(r, partAs[int64](r, w, 0, n), q))
		}
		for i, x := range append(routes, through(r, w, q)) {
			n := append(lengths, 8)[i]
			r.Equal(n, x.Len(r.Right()))
			r.NoError(x.PutValue(ctx, r.Right(), n-1, int64(n)))
			r.ErrorIs(x.PutValue(ctx, r.Right(), n, 1), window.ErrRange)
		}
		r.NoError(q.FlushAll(ctx))
		r.NoError(r.World.Barrier(ctx))
		r.Equal([]int64{0, 0, 3, 0, 5, 0, 0, 8}, w.Local())
		r.NoError(r.World.Barrier(ctx))
		r.NoError(w.Free(ctx))
		r.NoError(q.Close(ctx))
	})
}

// An update of a wide element goes on when its context has ended. The end of a queue or of a lease waits
// for it, so that it releases the lock of the element's stripe.
func TestUpdateThatWasLeftReleasesItsLock(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w, q := allocate[twin](ctx, r, 1, window.WithAttachments(1)), newQueue(r)
		leaveUpdate(ctx, r, through(r, w, q), r.Right(), func() error { return q.Close(ctx) })
		addAgain(ctx, r, w, r.Right())
		r.NoError(w.Fence(ctx))
		r.Equal(twin{A: 3, B: 3}, w.Local()[0])

		heads := allocate[window.Pointer[twin]](ctx, r, 1)
		p, attached, err := w.Attach(ctx, 1)
		r.NoError(err)
		r.NoError(heads.PutValue(ctx, r.Left(), 0, p))
		r.NoError(heads.Fence(ctx))
		first, err := w.Open(ctx, heads.Local()[0])
		r.NoError(err)
		leaveUpdate(ctx, r, first.Window, first.Target, func() error { return first.Close(ctx) })
		second, err := w.Open(ctx, heads.Local()[0])
		r.NoError(err)
		addAgain(ctx, r, second.Window, second.Target)
		r.NoError(second.Close(ctx))
		r.NoError(r.World.Barrier(ctx))
		r.Equal(twin{A: 3, B: 3}, attached[0])
		r.NoError(heads.Free(ctx))
		r.NoError(w.Free(ctx))
	})
}

// leaveUpdate adds to element 0 of the target under a context that ends. Then it calls end, which ends x.
func leaveUpdate(ctx context.Context, r *testjob.Rank, x *window.Window[twin], target int, end func() error) {
	inside, goOn := make(chan struct{}), make(chan struct{})
	op, err := window.RegisterOp(ctx, r.World, "slow add", func(a, b twin) twin {
		close(inside)
		<-goOn
		return twin{A: a.A + b.A, B: a.B + b.B}
	})
	r.NoError(err)
	path, err := x.Path(ctx, target)
	r.NoError(err)
	leave, cancel := context.WithCancel(ctx)
	updated, ended := make(chan error, 1), make(chan error, 1)
	go func() { updated <- window.Accumulate(leave, x, target, 0, []twin{{A: 1, B: 1}}, op) }()
	<-inside
	cancel()
	if path.Mapped { // no other goroutine carries out the update
		close(goOn)
		r.NoError(<-updated)
		r.NoError(end())
		return
	}
	r.ErrorIs(<-updated, context.Canceled)
	go func() { ended <- end() }()
	for range 100 {
		goruntime.Gosched() // most ends wait by now
	}
	r.Empty(ended)
	close(goOn)
	r.NoError(<-ended)
}

// addAgain has all ranks add to element 0 of their targets.
func addAgain(ctx context.Context, r *testjob.Rank, x *window.Window[twin], target int) {
	r.NoError(r.World.Barrier(ctx))
	r.NoError(window.Accumulate(ctx, x, target, 0, []twin{{A: 2, B: 2}}, addTwins(ctx, r)))
	r.NoError(x.Flush(ctx, target))
}

func TestWrongQueuesAreRefused(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		_, err := window.NewQueue(nil)
		r.ErrorIs(err, window.ErrTeam)
		w := allocate[int64](ctx, r, 1, window.WithAttachments(1))
		_, err = w.Through(nil)
		r.ErrorIs(err, window.ErrTeam)
		var queues []*window.Queue
		for len(queues) <= 256 && err != nil {
			var q *window.Queue
			if q, err = window.NewQueue(r.World); err == nil {
				queues, err = append(queues, q), window.ErrTeam
				continue
			}
			break
		}
		r.Len(queues, 256)
		r.ErrorIs(err, runtime.ErrExhausted)
		for _, q := range queues {
			r.NoError(q.Close(ctx))
		}
		p, _, err := w.Attach(ctx, 1)
		r.NoError(err)
		a, err := w.Open(ctx, p)
		r.NoError(err)
		q := newQueue(r)
		_, err = a.Through(q)
		r.ErrorIs(err, window.ErrPart)
		r.NoError(a.Close(ctx))
		r.ErrorIs(through(r, w, q).Free(ctx), window.ErrPart)
		r.NoError(w.Detach(ctx, p))
		r.NoError(w.Free(ctx))
	})
}

// The last rank dies while queues of the others lead to it. Their waits end, and a queue to other
// ranks goes on.
func TestQueueAfterTheDeathOfItsTarget(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			victim := r.N - 1
			w := allocate[int64](ctx, r, 2)
			r.NoError(w.Fence(ctx))
			if r.Me == victim {
				r.NoError(r.World.Barrier(ctx))
				r.Die()
			}
			q := newQueue(r)
			x := through(r, w, q)
			r.NoError(window.AtomicStore(ctx, x, victim, 0, 1))
			r.NoError(x.Flush(ctx, victim))
			err := r.World.Barrier(ctx) // behind it the victim dies
			if err == nil {
				err = r.World.Barrier(ctx)
			}
			r.ErrorIs(err, runtime.ErrRankDead)
			r.ErrorIs(repeat(ctx, func() error {
				_, err := window.FetchAdd(ctx, x, victim, 1, 1)
				if err == nil {
					err = x.Flush(ctx, victim)
				}
				return err
			}), runtime.ErrRankDead)
			_, err = window.FetchAdd(ctx, x, r.Me, 1, 1)
			r.NoError(err)
			_ = q.Close(ctx) // reports the death where it had connected
			_, err = w.Through(q)
			r.ErrorIs(err, window.ErrFreed)
		})
		require.Error(t, err)
	})
}
