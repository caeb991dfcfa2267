package litmus

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestFlushCoversOtherWindows(t *testing.T) {
	everywhere(t, "other windows")
	late(t, "other windows")
}

// flushOtherWindows: rank 0 puts at rank 1 through two windows, flushes one of them, and signals
// rank 2 through a third; rank 2 gets from rank 1. Forbidden: a value before the puts.
func flushOtherWindows(ctx context.Context, r *testjob.Rank) {
	quiet(ctx, r, []int{1}, func(data []*window.Window[uint64]) error { return data[0].Flush(ctx, 1) })
}

func TestJobFlushAll(t *testing.T) {
	everywhere(t, "all targets")
	late(t, "all targets")
}

// flushJob: rank 0 puts at all ranks through two windows, flushes the job, and signals the last
// rank through a third; that rank gets from all. Forbidden: a value before the puts.
func flushJob(ctx context.Context, r *testjob.Rank) {
	quiet(ctx, r, []int{0, 1, 2, 3}, func([]*window.Window[uint64]) error { return r.Job.FlushAll(ctx) })
}

func TestQueueFlushAll(t *testing.T) {
	everywhere(t, "queue")
	late(t, "queue")
}

// flushQueue: rank 0 puts at all ranks through a queue and two windows, flushes the queue, and
// signals the last rank; that rank gets from all. Forbidden: a value before the puts.
func flushQueue(ctx context.Context, r *testjob.Rank) {
	q, err := window.NewQueue(r.World)
	r.NoError(err)
	carried := func(data []*window.Window[uint64]) {
		for i := range data {
			data[i], err = data[i].Through(q)
			r.NoError(err)
		}
	}
	quietThrough(ctx, r, []int{0, 1, 2, 3}, carried, func([]*window.Window[uint64]) error { return q.FlushAll(ctx) })
}

// quiet has rank 0 put at targets through two windows, and call flush. The last rank must see
// all puts once it has rank 0's signal.
func quiet(ctx context.Context, r *testjob.Rank, targets []int, flush func([]*window.Window[uint64]) error) {
	quietThrough(ctx, r, targets, func([]*window.Window[uint64]) {}, flush)
}

// quietThrough is quiet with windows that change replaces.
func quietThrough(ctx context.Context, r *testjob.Rank, targets []int, change func([]*window.Window[uint64]), flush func([]*window.Window[uint64]) error) {
	const n = 512
	lengths := []int{n, 8} // a put returns before a device has taken its bytes, if they are few
	data := []*window.Window[uint64]{allocate[uint64](ctx, r, n), allocate[uint64](ctx, r, n)}
	change(data)
	flag := allocate[uint64](ctx, r, 1)
	buf := make([]uint64, n)
	last := r.N - 1
	for round := 1; round <= rounds(40); round++ {
		switch r.Me {
		case 0:
			for i := range buf {
				buf[i] = uint64(round)
			}
			for _, to := range targets {
				for i, w := range data {
					r.NoError(w.Put(ctx, to, 0, buf[:lengths[i]]))
				}
			}
			r.NoError(flush(data))
			tell(ctx, r, flag, last, 0, round)
			hear(ctx, r, flag, 0, round)
		case last:
			hear(ctx, r, flag, 0, round)
			for k := range targets {
				from := targets[(round+k)%len(targets)]
				for i, w := range data {
					got := buf[:lengths[i]]
					r.NoError(w.Get(ctx, from, 0, got))
					for j, v := range got {
						if v < uint64(round) {
							r.FailNow("flushed and not there", "round %d, rank %d, window %d, element %d is of round %d", round, from, i, j, v)
						}
					}
				}
			}
			tell(ctx, r, flag, 0, 0, round)
		}
	}
	for _, w := range data {
		r.NoError(w.Fence(ctx))
	}
}
