package litmus

import (
	"context"
	goruntime "runtime"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/window"
)

func TestPutsOfEightBytesAreWhole(t *testing.T) {
	if testwatch.Race {
		t.Skip("two ranks access one element without order, which is the point")
	}
	everywhere(t, "whole puts")
}

// wholePuts: rank 0 puts numbers whose halves are equal, rank 1 gets them, and loads them from its own
// memory. Forbidden: halves of two numbers.
func wholePuts(ctx context.Context, r *testjob.Rank) {
	w, done := allocate[uint64](ctx, r, 1), allocate[int64](ctx, r, 1)
	whole := func(v uint64, by string) {
		if v>>32 != v&0xffff_ffff {
			r.FailNow("a put in two halves", "%#x by %s", v, by)
		}
	}
	if r.Me == 0 {
		one := make([]uint64, 1)
		untilSet(ctx, r, done, 1, func(i uint64) {
			one[0] = i<<32 | i&0xffff_ffff
			if i%2 == 0 {
				r.NoError(w.Put(ctx, 1, 0, one))
			} else {
				r.NoError(w.PutValue(ctx, 1, 0, one[0]))
			}
			r.NoError(w.Flush(ctx, 1))
		})
	} else {
		for range rounds(1000) {
			v, err := window.AtomicLoad(ctx, w, 1, 0)
			r.NoError(err)
			whole(v, "an atomic")
			v, err = w.GetValue(ctx, 1, 0)
			r.NoError(err)
			whole(v, "a get")
			goruntime.Gosched()
		}
		r.NoError(window.AtomicStore(ctx, done, 0, 0, 1))
	}
	r.NoError(w.Fence(ctx))
}

// untilSet calls step with the numbers from 1 on until element 0 of this rank holds last.
func untilSet(ctx context.Context, r *testjob.Rank, done *window.Window[int64], last int64, step func(i uint64)) {
	for i := uint64(1); ; i++ {
		step(i)
		_, _, ok, err := window.TestUntil(done, window.Elements[int64]{At: []int{0}, Value: last})
		r.NoError(err)
		if ok {
			return
		}
		r.NoError(context.Cause(ctx))
		goruntime.Gosched()
	}
}

func TestIndependentReadsAgreeOnOneOrder(t *testing.T) {
	if testwatch.Race {
		t.Skip("ranks access elements without order, which is the point")
	}
	everywhere(t, "independent reads")
}

// independentReads: ranks 0 and 1 count up in an element of their own. Rank 2 gets rank 0's and then rank
// 1's, rank 3 the other way around. Forbidden: rank 2 has a later first number than rank 3, and an
// earlier second number. Each would have seen one rank's put ahead of the other's.
func independentReads(ctx context.Context, r *testjob.Rank) {
	n := rounds(60)
	w, done := allocate[uint64](ctx, r, 1), allocate[int64](ctx, r, 1)
	seen := allocate[[2]uint64](ctx, r, n)
	if r.Me < 2 {
		untilSet(ctx, r, done, 2, func(i uint64) { r.NoError(w.PutValue(ctx, r.Me, 0, i)) })
	} else {
		for i := range n {
			for j := range 2 {
				from := (r.Me + j) % 2
				v, err := w.GetValue(ctx, from, 0)
				r.NoError(err)
				seen.Local()[i][from] = v
			}
			goruntime.Gosched()
		}
		for to := range 2 {
			r.NoError(window.AtomicAdd(ctx, done, to, 0, 1))
		}
	}
	r.NoError(seen.Fence(ctx))
	if r.Me == 2 {
		theirs := make([][2]uint64, n)
		r.NoError(seen.Get(ctx, 3, 0, theirs))
		for i, mine := range seen.Local() {
			for j, other := range theirs {
				if mine[0] > other[0] && mine[1] < other[1] {
					r.FailNow("two orders of puts", "rank 2 got %d in round %d, rank 3 got %d in round %d", mine, i, other, j)
				}
			}
		}
	}
	r.NoError(seen.Fence(ctx))
}
