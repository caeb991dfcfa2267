package litmus

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestAccumulate(t *testing.T) { everywhere(t, "accumulate") }

// accumulate: all ranks add to one element. Forbidden: a lost update.
func accumulate(ctx context.Context, r *testjob.Rank) {
	n := int64(rounds(1000))
	w := allocate[int64](ctx, r, 1)
	for i := range n {
		if i%2 == 0 {
			r.NoError(window.AtomicAdd(ctx, w, 0, 0, 1))
		} else {
			_, err := window.FetchAdd(ctx, w, 0, 0, 1)
			r.NoError(err)
		}
	}
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		r.Equal(n*int64(r.N), w.Local()[0])
	}
}

func TestAccumulateInOrder(t *testing.T) { everywhere(t, "accumulate in order") }

// accumulateInOrder: rank 0 stores growing numbers in one element without
// anything between, rank 1 watches. Forbidden: a number after a larger one.
func accumulateInOrder(ctx context.Context, r *testjob.Rank) {
	n := int64(rounds(2000))
	w := allocate[int64](ctx, r, 1)
	if r.Me == 0 {
		for i := range n {
			r.NoError(window.AtomicStore(ctx, w, 1, 0, i+1))
		}
	} else {
		watchGrowth(ctx, r, w, 0, n)
	}
	r.NoError(w.Fence(ctx))
}

func TestMixedAtomics(t *testing.T) { everywhere(t, "mixed atomics") }

// mixedAtomics: the owner adds with the CPU's atomics on its own memory while the
// other ranks add through the window. Forbidden: a lost update.
func mixedAtomics(ctx context.Context, r *testjob.Rank) {
	n := int64(rounds(1000))
	w := allocate[int64](ctx, r, 1)
	for range n {
		if r.Me == 0 {
			atomic.AddInt64(&w.Local()[0], 1)
		} else {
			_, err := window.FetchAdd(ctx, w, 0, 0, 1)
			r.NoError(err)
		}
	}
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		r.Equal(n*int64(r.N), atomic.LoadInt64(&w.Local()[0]))
	}
}

func TestLock(t *testing.T) { everywhere(t, "lock") }

// lock: a counter without atomics under an exclusive lock. Forbidden: a lost
// update.
func lock(ctx context.Context, r *testjob.Rank) {
	n := rounds(40)
	w := allocate[int](ctx, r, 1)
	for range n {
		held, err := w.Lock(ctx, 0, window.Exclusive)
		r.NoError(err)
		v, err := w.GetValue(ctx, 0, 0)
		r.NoError(err)
		r.NoError(w.PutValue(ctx, 0, 0, v+1))
		r.NoError(held.Unlock(ctx))
	}
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		r.Equal(n*r.N, w.Local()[0])
	}
}
