package litmus

import (
	"context"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/window"
)

func TestStartedAccumulatesInOrder(t *testing.T) { everywhere(t, "started accumulates in order") }

// startedAccumulatesInOrder: rank 0 starts four calls on the same elements without a wait
// between: it writes, reads, writes, and reads. Forbidden: a read that has not the value of the
// write before it, or has that of the write after it. Rank 1 watches. Forbidden: a number
// after a larger one.
func startedAccumulatesInOrder(ctx context.Context, r *testjob.Rank) {
	const elements = 5
	n := int64(rounds(200))
	w := allocate[int64](ctx, r, elements+1)
	if r.Me == 1 {
		watchGrowth(ctx, r, w, elements-1, 2*n)
	} else {
		first, second, old := make([]int64, elements), make([]int64, elements), make([]int64, elements)
		seen, requests := make([]int64, 2), make([]window.Request, 4)
		for i := range n {
			for e := range elements {
				first[e], second[e] = 2*i+1, 2*i+2
			}
			var errs [4]error
			requests[0], errs[0] = window.StartAccumulate(ctx, w, 1, 0, first, window.Replace[int64]())
			requests[1], errs[1] = window.StartFetchOp(ctx, w, 1, 2, 0, window.NoOp[int64](), &seen[0])
			requests[2], errs[2] = window.StartGetAccumulate(ctx, w, 1, 0, second, old, window.Max[int64]())
			requests[3], errs[3] = window.StartFetchOp(ctx, w, 1, elements-1, 0, window.Sum[int64](), &seen[1])
			for _, err := range errs {
				r.NoError(err)
			}
			r.NoError(window.WaitAll(ctx, requests))
			r.Equal([]int64{2*i + 1, 2*i + 2}, seen, "accumulates out of order")
			r.Equal(first, old, "accumulates out of order")
		}
		endGrowth(ctx, r, w, elements)
	}
	r.NoError(w.Fence(ctx))
}

// watchGrowth loads rank 1's element until it holds last. The element behind it is not 0 once rank 0 has
// stored all numbers.
func watchGrowth(ctx context.Context, r *testjob.Rank, w *window.Window[int64], index int, last int64) {
	for seen := int64(0); seen < last; goruntime.Gosched() {
		r.NoError(context.Cause(ctx))
		r.NoError(context.Cause(r.Job.Context()), "rank 0 has failed")
		over, err := window.AtomicLoad(ctx, w, 1, index+1)
		r.NoError(err)
		v, err := window.AtomicLoad(ctx, w, 1, index)
		r.NoError(err)
		if v < seen || over != 0 && v < last {
			r.FailNow("accumulates out of order", "%d after %d, of %d", v, seen, last)
		}
		seen = v
	}
}

// endGrowth tells the watching rank that all numbers are stored.
func endGrowth(ctx context.Context, r *testjob.Rank, w *window.Window[int64], over int) {
	r.NoError(w.Flush(ctx, 1))
	r.NoError(window.AtomicStore(ctx, w, 1, over, 1))
}

// TestAccumulateAfterCancel: a rank cancels accumulates and overwrites their operands and the
// memory for the earlier values. Forbidden: that the target adds the new content, adds an operand
// twice, or that a byte of this rank's memory changes afterward.
func TestAccumulateAfterCancel(t *testing.T) {
	held := faulty.Plan{Seed: 1, DelayStarts: 1, DelayCompletions: 1, MaxDelay: time.Millisecond, MaxPolls: 1 << 20}
	for _, c := range []testjob.Config{{Provider: "tcp", Ranks: 2}, {Provider: "loop", Queued: true, Ranks: 2}, {Provider: "loop", NIC: true, Ranks: 2}} {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, accumulateAfterCancel)
			c.Run(t, accumulateAfterCancel, runtime.WithWrap(func(p driver.Provider) driver.Provider { return faulty.New(p, held) }))
		})
	}
}

func accumulateAfterCancel(ctx context.Context, r *testjob.Rank) {
	const n, tries, foreign = 64 << 10, 6, 1 << 20
	w := allocate[int64](ctx, r, n)
	if r.Me == 0 {
		src, old := make([]int64, n), make([]int64, n)
		for try := range tries {
			set(src, 1)
			soon, cancel := context.WithTimeout(ctx, time.Duration(try)*time.Millisecond/2)
			err := window.Accumulate(soon, w, 1, 0, src, window.Sum[int64]())
			if err == nil {
				err = window.GetAccumulate(soon, w, 1, 0, src, old, window.Sum[int64]())
			}
			cancel()
			if err != nil {
				r.ErrorIs(err, context.DeadlineExceeded)
			}
			set(src, foreign)
			set(old, foreign)
			goruntime.GC()
			_, err = window.AtomicLoad(ctx, w, 1, 0) // behind all operands that are still under way
			r.NoError(err)
			for i := range old {
				if old[i] != foreign {
					r.FailNow("memory changed after the call", "element %d is %d", i, old[i])
				}
			}
		}
	}
	r.NoError(w.Fence(ctx))
	for i, v := range w.Local() {
		if v < 0 || v > 2*tries {
			r.FailNow("an operand of no call", "element %d is %d", i, v)
		}
	}
	r.NoError(w.Fence(ctx))
}

func set(s []int64, v int64) {
	for i := range s {
		s[i] = v
	}
}
