package window_test

import (
	"context"
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/window"
)

// TestLockAndUnlockFinishBehindTheirContexts has contexts end before the home's responses, which
// arrive after most calls have returned.
func TestLockAndUnlockFinishBehindTheirContexts(t *testing.T) {
	slow := disturbed(faulty.Plan{Seed: 5, DelayCompletions: 1, MaxDelay: 300 * time.Millisecond, MaxPolls: 1 << 30})
	testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		r.NoError(w.PutValue(ctx, 1, 0, 1)) // connects
		over, cancel := context.WithCancel(ctx)
		cancel()
		for _, m := range []window.Mode{window.Exclusive, window.Shared} {
			if r.Me == 0 {
				held, err := w.Lock(over, 1, m)
				if err != nil {
					r.ErrorIs(err, context.Canceled)
					held, err = w.Lock(ctx, 1, m)
					r.NoError(err)
				}
				if err := held.Unlock(over); err != nil {
					r.ErrorIs(err, context.Canceled)
				}
			}
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 1 {
				held, err := w.Lock(ctx, 1, window.Exclusive)
				r.NoError(err)
				r.NoError(held.Unlock(ctx))
			}
			r.NoError(r.World.Barrier(ctx))
		}
	}, slow)
}

// TestFreeWaitsForALockThatWasGivenUp: a goroutine of the call that gave up hands the lock to its own rank while the
// window ends there. On a busy machine rank 1 may come too late for that, and the call may get the lock.
func TestFreeWaitsForALockThatWasGivenUp(t *testing.T) {
	slow := disturbed(faulty.Plan{Seed: 7, DelayCompletions: 1, MaxDelay: 300 * time.Millisecond, MaxPolls: 1 << 30})
	over, done := make(chan context.CancelFunc, 1), make(chan struct{})
	testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		until := func(ready func(s window.LockState) bool) {
			for !ready(w.LockState()) {
				select {
				case <-done:
					return
				default:
					r.NoError(ctx.Err())
					goruntime.Gosched()
				}
			}
		}
		if r.Me == 0 {
			r.NoError(w.PutValue(ctx, 1, 0, 1)) // connects
			r.NoError(r.World.Barrier(ctx), "rank 1 has the lock")
			short, cancel := context.WithCancel(ctx)
			over <- cancel
			held, err := w.Lock(short, 1, window.Shared)
			close(done)
			if err == nil {
				r.NoError(held.Unlock(ctx))
			} else {
				r.ErrorIs(err, context.Canceled)
			}
		} else {
			held, err := w.Lock(ctx, 1, window.Exclusive)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			until(func(s window.LockState) bool { return s.Readers == 1 || len(s.Waiting) > 0 })
			r.NoError(held.Unlock(ctx)) // before rank 0 queues, so rank 0 decides
			until(func(s window.LockState) bool { return len(s.Waiting) > 0 })
			(<-over)()
		}
		r.NoError(w.Free(ctx))
	}, slow)
}

// TestFreeWaitsForALockThatCameLate: a goroutine of the call that gave up gets the lock, and hands it to rank 1 while
// the window ends at rank 0. On a busy machine the call may get the lock in time.
func TestFreeWaitsForALockThatCameLate(t *testing.T) {
	slow := disturbed(faulty.Plan{Seed: 3, DelayCompletions: 1, MaxDelay: 300 * time.Millisecond, MaxPolls: 1 << 30})
	var done atomic.Bool // rank 0's call has ended
	testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		for range 3 {
			w := allocate[int64](ctx, r, 1)
			done.Store(false)
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 0 {
				r.NoError(w.PutValue(ctx, 1, 0, 1)) // connects
				over, cancel := context.WithCancel(ctx)
				cancel()
				held, err := w.Lock(over, 1, window.Exclusive)
				done.Store(true)
				if err == nil {
					r.NoError(held.Unlock(ctx))
				} else {
					r.ErrorIs(err, context.Canceled)
				}
			} else {
				for w.LockState().Writer != 0 && !done.Load() {
					r.NoError(ctx.Err())
					goruntime.Gosched()
				}
				held, err := w.Lock(ctx, 1, window.Exclusive)
				r.NoError(err)
				r.NoError(held.Unlock(ctx))
			}
			r.NoError(w.Free(ctx))
		}
	}, slow)
}
