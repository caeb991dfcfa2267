package litmus

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

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
	w := allocate[int64](ctx, r, 2)
	if r.Me == 0 {
		for i := range n {
			r.NoError(window.AtomicStore(ctx, w, 1, 0, i+1))
		}
		endGrowth(ctx, r, w, 1)
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

func TestLockGivenUp(t *testing.T) { everywhere(t, "lock given up") }

// lockGivenUp: lock, with waits that end early. Two elements change together under an exclusive lock.
// Forbidden: a lost update, elements that differ under a shared lock, a lock that stays taken.
func lockGivenUp(ctx context.Context, r *testjob.Rank) {
	w, got := allocate[int64](ctx, r, 2), allocate[int64](ctx, r, 1)
	both := make([]int64, 2)
	for i := range rounds(60) {
		m, over, cancel := window.Mode(rand.IntN(2)), ctx, context.CancelFunc(func() {})
		if i%3 > 0 {
			over, cancel = context.WithTimeout(ctx, time.Duration(rand.IntN(200))*time.Microsecond)
		}
		held, err := w.Lock(over, 0, m)
		cancel()
		if err != nil {
			r.ErrorIs(err, context.DeadlineExceeded)
			continue
		}
		r.NoError(w.Get(ctx, 0, 0, both))
		r.Equal(both[0], both[1])
		if m == window.Exclusive {
			r.NoError(w.Put(ctx, 0, 0, []int64{both[0] + 1, both[1] + 1}))
			r.NoError(window.AtomicAdd(ctx, got, 0, 0, 1))
		}
		r.NoError(held.Unlock(ctx))
	}
	held, err := w.Lock(ctx, 0, window.Exclusive)
	r.NoError(err)
	r.NoError(held.Unlock(ctx))
	r.NoError(got.Fence(ctx))
	if r.Me == 0 {
		r.Equal(got.Local()[0], w.Local()[0])
	}
}
