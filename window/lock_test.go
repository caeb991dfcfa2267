package window_test

import (
	"context"
	"errors"
	"math/rand/v2"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// TestExclusiveLockExcludesAllOtherHolders counts without atomics under the lock, from all
// ranks and several goroutines of each.
func TestExclusiveLockExcludesAllOtherHolders(t *testing.T) { testjob.All(t, 1, countUnderLock) }

// countUnderLock counts without atomics.
func countUnderLock(ctx context.Context, r *testjob.Rank) {
	const each = 10
	w := allocate[int](ctx, r, 1)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for range each {
				fine(r, increment(ctx, w))
			}
		})
	}
	group.Wait()
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		r.Equal(2*each*r.N, w.Local()[0])
	}
}

func TestTryLockTakesOnlyAFreeLock(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		last := r.N - 1
		try := func(m window.Mode) (window.Held, bool) {
			held, ok, err := w.TryLock(ctx, last, m)
			r.NoError(err)
			return held, ok
		}
		if r.Me == 0 {
			held, ok := try(window.Exclusive)
			r.True(ok)
			_, ok = try(window.Exclusive)
			r.False(ok, "another goroutine of this rank may hold it")
			r.NoError(r.World.Barrier(ctx))
			r.NoError(r.World.Barrier(ctx))
			r.NoError(held.Unlock(ctx))
		} else {
			r.NoError(r.World.Barrier(ctx))
			for _, m := range []window.Mode{window.Exclusive, window.Shared} {
				held, ok := try(m)
				r.False(ok)
				r.ErrorIs(held.Unlock(ctx), window.ErrNotHeld)
			}
			r.NoError(r.World.Barrier(ctx))
		}
		r.NoError(r.World.Barrier(ctx))
		held, ok := try(window.Shared)
		r.True(ok, "shared locks go together")
		r.NoError(r.World.Barrier(ctx))
		_, ok = try(window.Exclusive)
		r.False(ok)
		r.NoError(r.World.Barrier(ctx))
		r.NoError(held.Unlock(ctx))
		for range 5 {
			r.NoError(repeatUntil(ctx, func() (bool, error) {
				held, ok, err := w.TryLock(ctx, last, window.Exclusive)
				if !ok || err != nil {
					return false, err
				}
				v, err := w.GetValue(ctx, last, 0)
				r.NoError(err)
				r.NoError(w.PutValue(ctx, last, 0, v+1))
				return true, held.Unlock(ctx)
			}))
		}
		r.NoError(w.Fence(ctx))
		if r.Me == last {
			r.EqualValues(5*r.N, w.Local()[0])
		}
		_, _, err := w.TryLock(ctx, r.N, window.Shared)
		r.ErrorIs(err, window.ErrRange)
		_, _, err = w.TryLock(ctx, window.Null, window.Shared)
		r.ErrorIs(err, window.ErrRange)
		_, _, err = w.TryLock(ctx, 0, window.Mode(7))
		r.Error(err)
		r.NoError(r.World.Barrier(ctx))
		r.NoError(w.Free(ctx))
		_, _, err = w.TryLock(ctx, 0, window.Shared)
		r.ErrorIs(err, window.ErrFreed)
	})
}

// increment adds one to rank 0's element without an atomic, so that it needs the
// lock.
func increment(ctx context.Context, w *window.Window[int]) error {
	held, err := w.Lock(ctx, 0, window.Exclusive)
	if err != nil {
		return err
	}
	v, err := w.GetValue(ctx, 0, 0)
	if err == nil {
		err = w.PutValue(ctx, 0, 0, v+1)
	}
	return errors.Join(err, held.Unlock(ctx))
}

func TestSharedLockAdmitsReadersAndExcludesWriters(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 2)
		held, err := w.Lock(ctx, 0, window.Shared)
		r.NoError(err)
		r.NoError(r.World.Barrier(ctx), "all hold the lock at once")
		if r.Me == 0 {
			soon, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
			defer cancel()
			_, err := w.Lock(soon, 0, window.Exclusive)
			r.ErrorIs(err, context.DeadlineExceeded)
		}
		r.NoError(r.World.Barrier(ctx))
		r.NoError(held.Unlock(ctx))
		writer, err := w.Lock(ctx, 0, window.Exclusive)
		r.NoError(err)
		r.NoError(writer.Unlock(ctx))
	})
}

// TestReadersDoNotStarveAWriter has readers take the lock in turns, so that it is
// hardly ever free, until a writer has had it.
func TestReadersDoNotStarveAWriter(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		if r.Me == 0 {
			for range 10 {
				held, err := w.Lock(ctx, 0, window.Exclusive)
				r.NoError(err)
				r.NoError(held.Unlock(ctx))
			}
			r.NoError(window.AtomicStore(ctx, w, 0, 0, 1))
		}
		var group sync.WaitGroup
		for range 2 {
			group.Go(func() { read(ctx, r, w) })
		}
		group.Wait()
		r.NoError(w.Fence(ctx))
	})
}

// read takes and leaves the shared lock until rank 0 says that it is done.
func read(ctx context.Context, r *testjob.Rank, w *window.Window[int64]) {
	for done := int64(0); done == 0; {
		held, err := w.Lock(ctx, 0, window.Shared)
		if err != nil {
			fine(r, err)
			return
		}
		goruntime.Gosched()
		done, err = window.AtomicLoad(ctx, w, 0, 0)
		if err = errors.Join(err, held.Unlock(ctx)); err != nil {
			fine(r, err)
			return
		}
	}
}

func TestCanceledLockLeavesTheQueue(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int](ctx, r, 1)
		cause := errors.New("no patience")
		if r.Me == 0 {
			held, err := w.Lock(ctx, 0, window.Exclusive)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			r.NoError(r.World.Barrier(ctx), "the others gave up")
			r.NoError(held.Unlock(ctx))
		} else {
			r.NoError(r.World.Barrier(ctx))
			over, cancel := context.WithCancelCause(ctx)
			time.AfterFunc(time.Duration(r.Me)*time.Millisecond, func() { cancel(cause) })
			_, err := w.Lock(over, 0, window.Mode(r.Me%2))
			r.ErrorIs(err, cause)
			r.NoError(r.World.Barrier(ctx))
		}
		shared, err := w.Lock(ctx, 0, window.Shared)
		r.NoError(err, "no writer is counted any more")
		r.NoError(shared.Unlock(ctx))
		r.NoError(increment(ctx, w))
	})
}

// TestLockExcludesAmidManyCancellations checks mutual exclusion while locks are
// given up at any point.
func TestLockExcludesAmidManyCancellations(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int](ctx, r, 1)
		got := allocate[int](ctx, r, 1)
		for range 40 {
			over, cancel := context.WithTimeout(ctx, time.Duration(rand.Int64N(int64(200*time.Microsecond))))
			held, err := w.Lock(over, 0, window.Exclusive)
			if err == nil {
				v, err := w.GetValue(ctx, 0, 0)
				r.NoError(err)
				r.NoError(w.PutValue(ctx, 0, 0, v+1))
				r.NoError(held.Unlock(ctx))
				r.NoError(window.AtomicAdd(ctx, got, 0, 0, 1))
			} else {
				r.ErrorIs(err, context.DeadlineExceeded)
			}
			cancel()
		}
		r.NoError(increment(ctx, w), "the lock still works")
		r.NoError(got.Fence(ctx))
		if r.Me == 0 {
			r.Equal(got.Local()[0]+r.N, w.Local()[0])
		}
	})
}

func TestUnlockWithoutTheLockReturnsAnError(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int](ctx, r, 1)
		held, err := w.Lock(ctx, r.Right(), window.Exclusive)
		r.NoError(err)
		r.NoError(held.Unlock(ctx))
		r.ErrorIs(held.Unlock(ctx), window.ErrNotHeld)
		r.ErrorIs(window.Held{}.Unlock(ctx), window.ErrNotHeld)
		_, err = w.Lock(ctx, r.Right(), window.Mode(7))
		r.ErrorContains(err, "lock mode 7")
		r.NoError(increment(ctx, w), "and releases no other lock")
	})
}

func TestUnlockMakesPutsVisibleToTheNextHolder(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		lock := allocate[byte](ctx, r, 1)
		data := allocate[uint64](ctx, r, 512)
		src, dst := make([]uint64, 512), make([]uint64, 512)
		for round := range 10 {
			held, err := lock.Lock(ctx, 0, window.Exclusive)
			r.NoError(err)
			r.NoError(data.Get(ctx, 0, 0, dst))
			for i := range dst {
				r.Equal(dst[0], dst[i], "half of what another holder put")
				src[i] = uint64(r.Me*1000 + round)
			}
			r.NoError(data.Put(ctx, 0, 0, src))
			r.NoError(held.Unlock(ctx))
		}
	})
}

func TestLockFailsWhenTheHolderDies(t *testing.T) {
	testjob.Each(t, 3, func(t *testing.T, c testjob.Config) {
		held := make(chan struct{})
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int](ctx, r, 1)
			if r.Me == r.N-1 {
				_, err := w.Lock(ctx, 0, window.Exclusive)
				r.NoError(err)
				close(held)
				r.Die()
			}
			<-held
			start := time.Now()
			_, err := w.Lock(ctx, 0, window.Exclusive)
			dead(r, err, start, r.N-1)
		})
		require.ErrorContains(t, err, "ended without returning")
	})
}

// dead checks that err names the death of rank, and came within the patience of a
// watchdog.
func dead(r *testjob.Rank, err error, since time.Time, rank int) {
	took := time.Since(since)
	r.ErrorIs(err, runtime.ErrRankDead)
	var e *runtime.RankError
	r.ErrorAs(err, &e)
	r.Equal(rank, e.Rank)
	r.Less(took, testwatch.Patience())
}
