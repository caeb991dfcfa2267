package window_test

import (
	"context"
	"errors"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/window"
)

// TestOwnerInALoopOvertakesNoRankThatWaits has the home take its lock over and over. The home gets
// it behind each rank that waited before for an exclusive one.
func TestOwnerInALoopOvertakesNoRankThatWaits(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int64](ctx, r, 1)
			turns := testwatch.Rounds(20)
			if r.Me > 0 {
				for range turns {
					r.NoError(underLock(ctx, w, window.Exclusive, func() error { return nil }))
				}
				r.NoError(window.AtomicAdd(ctx, w, 0, 0, 1))
			} else {
				overtake(ctx, r, w)
			}
			r.NoError(w.Fence(ctx))
		})
	})
}

// overtake takes the lock until all other ranks have said that they are done.
func overtake(ctx context.Context, r *testjob.Rank, w *window.Window[int64]) {
	for done := int64(0); done < int64(r.N)-1; {
		before := w.LockState()
		r.NoError(underLock(ctx, w, window.Exclusive, func() (err error) {
			if after := w.LockState(); before.Waiters {
				for _, ticket := range before.Tickets {
					r.NotContains(after.Tickets, ticket, "%+v and then %+v", before, after)
				}
			}
			done, err = window.AtomicLoad(ctx, w, 0, 0)
			return err
		}))
	}
}

// underLock calls f while this rank has the lock of rank 0.
func underLock(ctx context.Context, w *window.Window[int64], m window.Mode, f func() error) error {
	held, err := w.Lock(ctx, 0, m)
	if err != nil {
		return err
	}
	return errors.Join(f(), held.Unlock(ctx))
}

// TestLockersOfEachModeGetTheirTurns has no rank starve another, whatever the modes of both.
func TestLockersOfEachModeGetTheirTurns(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		for _, modes := range [][2]window.Mode{{window.Shared, window.Shared}, {window.Exclusive, window.Shared}, {window.Shared, window.Exclusive}} {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				w := allocate[int64](ctx, r, 1)
				turns := testwatch.Rounds(20)
				for done := int64(0); done == 0; {
					r.NoError(underLock(ctx, w, modes[min(r.Me, 1)], func() (err error) {
						done, err = window.AtomicLoad(ctx, w, 0, 0)
						return err
					}))
					if turns--; r.Me == r.N-1 && turns == 0 {
						r.NoError(window.AtomicStore(ctx, w, 0, 0, 1))
					}
				}
				r.NoError(w.Fence(ctx))
			})
		}
	})
}

// TestLockGoesToWritersInOrderAndToAllReadersBetween has ranks wait one after the other.
func TestLockGoesToWritersInOrderAndToAllReadersBetween(t *testing.T) {
	testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
		next, order := make([]chan struct{}, c.Ranks), make(chan int, c.Ranks)
		for i := range next {
			next[i] = make(chan struct{})
		}
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int64](ctx, r, 1)
			r.NoError(r.World.Barrier(ctx))
			if r.Me > 0 {
				<-next[r.Me]
				r.NoError(underLock(ctx, w, window.Mode(r.Me%2), func() error { order <- r.Me; return nil }))
			} else {
				r.NoError(underLock(ctx, w, window.Exclusive, func() error {
					for rank := 1; rank < r.N; rank++ {
						close(next[rank])
						for s := w.LockState(); !slices.Contains(s.Waiting, rank) || !s.Waiters; s = w.LockState() {
							r.NoError(ctx.Err())
							goruntime.Gosched()
						}
					}
					return nil
				}))
			}
			r.NoError(w.Fence(ctx))
			if r.Me == 0 {
				readers, got := (r.N-1)/2, []int{}
				for range r.N - 1 {
					got = append(got, <-order)
				}
				slices.Sort(got[:readers])
				for i, rank := range got {
					want := 2 * (i + 1)
					if i >= readers {
						want = 2*(i-readers) + 1
					}
					r.Equal(want, rank, "%v", got)
				}
			}
		})
	})
}

// TestLocksSurviveCancellationsOfBothModes checks at each entry that no rank has the lock that should
// not. Several goroutines of each rank give locks up at any moment.
func TestLocksSurviveCancellationsOfBothModes(t *testing.T) {
	testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int64](ctx, r, 2) // writers and readers that have the lock
			group := make(chan error, 2)
			for range cap(group) {
				go func() { group <- giveUpOften(ctx, w) }()
			}
			for range cap(group) {
				r.NoError(<-group)
			}
			r.NoError(w.Fence(ctx))
			r.NoError(underLock(ctx, w, window.Exclusive, func() error { return nil }), "the lock still works")
			r.NoError(w.Fence(ctx))
			for r.Me == 0 { // a reader that gave up takes itself out later, if its atomic took long
				if s := w.LockState(); s.Writer == -1 && s.Readers == 0 && len(s.Waiting) == 0 {
					break
				}
				r.NoError(ctx.Err())
				goruntime.Gosched()
			}
			r.NoError(w.Free(ctx))
		})
	})
}

// giveUpOften locks with little patience.
func giveUpOften(ctx context.Context, w *window.Window[int64]) error {
	for range testwatch.Rounds(30) {
		m := window.Mode(rand.IntN(2))
		over, cancel := context.WithTimeoutCause(ctx, time.Duration(rand.Int64N(int64(300*time.Microsecond))), errImpatient)
		held, err := w.Lock(over, 0, m)
		cancel()
		switch {
		case errors.Is(err, errImpatient):
			continue
		case err != nil:
			return err
		}
		err = checkHolders(ctx, w, m)
		if err = errors.Join(err, held.Unlock(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// checkHolders counts this rank among the holders, looks at them, and takes it out again.
func checkHolders(ctx context.Context, w *window.Window[int64], m window.Mode) error {
	mine, other := 0, 1
	if m == window.Shared {
		mine, other = 1, 0
	}
	before, err := window.FetchAdd(ctx, w, 0, mine, 1)
	if err != nil {
		return err
	}
	others, err := window.AtomicLoad(ctx, w, 0, other)
	if err == nil && (others != 0 || m == window.Exclusive && before != 0) {
		err = errors.New("another rank has the lock, too")
	}
	_, failed := window.FetchAdd(ctx, w, 0, mine, -1)
	return errors.Join(err, failed)
}

// TestLockAllSharesAndExcludesExclusiveLocks puts under locks of both kinds.
func TestLockAllSharesAndExcludesExclusiveLocks(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int64](ctx, r, 2)
			all, err := w.LockAll(ctx)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx), "all share the locks")
			_, ok, err := w.TryLock(ctx, r.Right(), window.Exclusive)
			r.NoError(err)
			r.False(ok)
			r.NoError(r.World.Barrier(ctx))
			r.NoError(all.Unlock(ctx))
			r.ErrorIs(all.Unlock(ctx), window.ErrNotHeld)
			r.ErrorIs(window.HeldAll{}.Unlock(ctx), window.ErrNotHeld)
			both := make([]int64, 2)
			for range testwatch.Rounds(20) {
				if r.Me == 0 {
					all, err := w.LockAll(ctx)
					r.NoError(err)
					r.NoError(w.Get(ctx, r.N-1, 0, both))
					r.Equal(both[0], both[1])
					r.NoError(all.Unlock(ctx))
					continue
				}
				held, err := w.Lock(ctx, r.N-1, window.Exclusive)
				r.NoError(err)
				r.NoError(w.PutValue(ctx, r.N-1, 0, int64(r.Me)))
				r.NoError(w.PutValue(ctx, r.N-1, 1, int64(r.Me)))
				r.NoError(held.Unlock(ctx))
			}
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 0 {
				over, cancel := context.WithCancel(ctx)
				cancel()
				held, err := w.Lock(ctx, r.N-1, window.Exclusive)
				r.NoError(err)
				_, err = w.LockAll(over)
				r.ErrorIs(err, context.Canceled)
				r.NoError(held.Unlock(ctx))
			}
			r.NoError(w.Fence(ctx))
			r.NoError(w.Free(ctx), "no lock is left")
		})
	})
}
