package litmus

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/window"
)

// TestRingAtEveryMoment rings after each of a waiter's looks in turn, the last
// one before it sleeps among them. Forbidden: that it sleeps on.
func TestRingAtEveryMoment(t *testing.T) {
	last := looksBeforeSleep(t)
	require.Greater(t, last, 100)
	for look := 1; look <= last; look++ {
		bell := wait.NewLocal()
		ctx, cancel := testwatch.With(t.Context())
		var condition atomic.Bool
		looks := 0
		bell.OnPark(func() {
			if looks < look-1 { // it goes to sleep earlier than the last one did
				condition.Store(true)
			}
		})
		err := bell.Wait(ctx, func() bool {
			was := condition.Load()
			if looks++; looks == look {
				condition.Store(true)
				bell.Ring()
			}
			return was
		})
		require.NoError(t, errors.Join(err, context.Cause(ctx)), "the waiter slept through its wake-up: rung after look %d of %d", look, last)
		cancel()
	}
}

// looksBeforeSleep counts how often a waiter looks until it sleeps.
func looksBeforeSleep(t *testing.T) (looks int) {
	bell := wait.NewLocal()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for bell.Parks() == 0 {
		looks = 0
		err := bell.Wait(ctx, func() bool {
			if bell.Parks() == 0 {
				looks++
			}
			return false
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		if bell.Parks() == 0 { // a busy machine: the time was over before it slept
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
		}
	}
	return looks
}

func TestPutEndsAWaitForItsElement(t *testing.T) {
	if testwatch.Race {
		t.Skip("a put is no atomic")
	}
	everywhere(t, "put as flag")
}

// putAsFlag: rank 0 puts one element, without a flush, while rank 1 waits for it. Forbidden: that it
// sleeps on.
func putAsFlag(ctx context.Context, r *testjob.Rank) {
	storeAsFlag(ctx, r, func(w *window.Window[uint64], v uint64) error { return w.PutValue(ctx, 1, 1, v) })
}

func TestAtomicEndsAWaitForItsElement(t *testing.T) { everywhere(t, "atomic as flag") }

// atomicAsFlag is putAsFlag with an atomic.
func atomicAsFlag(ctx context.Context, r *testjob.Rank) {
	storeAsFlag(ctx, r, func(w *window.Window[uint64], v uint64) error { return window.AtomicStore(ctx, w, 1, 1, v) })
}

func storeAsFlag(ctx context.Context, r *testjob.Rank, store func(w *window.Window[uint64], v uint64) error) {
	w := allocate[uint64](ctx, r, 2)
	for round := 1; round <= rounds(20); round++ {
		if r.Me == 0 {
			hear(ctx, r, w, 0, round)
			time.Sleep(time.Duration(rand.Int64N(int64(500 * time.Microsecond))))
			r.NoError(store(w, uint64(round)))
			continue
		}
		tell(ctx, r, w, 0, 0, round)
		_, _, err := window.WaitUntil(ctx, w, window.Elements[uint64]{At: []int{1}, Value: uint64(round)})
		r.NoError(err)
	}
	r.NoError(w.Fence(ctx))
}

func TestWakeUp(t *testing.T) { everywhere(t, "wake-up") }

// wakeUp: two ranks signal each other in turn, after pauses that have the
// waiter spin, about to park, or asleep. Forbidden: that it sleeps on.
func wakeUp(ctx context.Context, r *testjob.Rank) {
	w := allocate[uint64](ctx, r, 1)
	for round := 1; round <= rounds(200); round++ {
		if r.Me == round%2 {
			time.Sleep(time.Duration(rand.Int64N(int64(500 * time.Microsecond))))
			tell(ctx, r, w, r.Right(), 0, round)
			continue
		}
		hear(ctx, r, w, 0, round) // until the job's watchdog ends it
	}
	r.NoError(w.Fence(ctx))
}
