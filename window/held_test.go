package window_test

import (
	"context"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// namesHolder checks that err says that rank kept a lock of window "counts".
func namesHolder(r *testjob.Rank, err error, rank int) {
	r.ErrorIs(err, window.ErrHeld)
	r.ErrorContains(err, "window counts at rank 0")
	var e *runtime.RankError
	r.ErrorAs(err, &e)
	r.Equal(rank, e.Rank)
}

func TestLockReturnsErrHeldWhenTheBodyOfTheHolderReturns(t *testing.T) {
	for _, mode := range []window.Mode{window.Shared, window.Exclusive} {
		t.Run(mode.String(), func(t *testing.T) {
			testjob.Each(t, 3, func(t *testing.T, c testjob.Config) {
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					w := allocate[int](ctx, r, 1, window.WithName("counts"))
					if r.Me == r.N-1 {
						_, err := w.Lock(ctx, 0, mode)
						r.NoError(err)
					}
					r.NoError(r.World.Barrier(ctx))
					if r.Me < r.N-1 {
						_, err := w.Lock(ctx, 0, window.Exclusive)
						namesHolder(r, err, r.N-1)
						_, err = w.Lock(ctx, 0, window.Shared)
						namesHolder(r, err, r.N-1)
					}
				})
				require.ErrorIs(t, err, window.ErrHeld, "the holder learns it, too")
				require.ErrorContains(t, err, "unlock before")
			})
		})
	}
}

// TestFreeAndCloseByTheHolderWakeWaitingLocks: rank 0 waits for its own lock, and sleeps.
func TestFreeAndCloseByTheHolderWakeWaitingLocks(t *testing.T) {
	for name, goes := range map[string]func(ctx context.Context, w *window.Window[int]) error{
		"Free":  func(ctx context.Context, w *window.Window[int]) error { return w.Free(ctx) },
		"Close": func(context.Context, *window.Window[int]) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
				queued := make(chan func() bool, 1)
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					w := allocate[int](ctx, r, 1, window.WithName("counts"))
					if r.Me == 1 {
						_, err := w.Lock(ctx, 0, window.Exclusive)
						r.NoError(err)
					}
					r.NoError(r.World.Barrier(ctx))
					switch r.Me {
					case 0:
						bell := team.Of(r.World).Bell()
						before := bell.Parks()
						queued <- func() bool { return bell.Parks() > before }
						_, err := w.Lock(ctx, 0, window.Exclusive)
						namesHolder(r, err, 1)
						if name == "Free" {
							r.NoError(w.Free(ctx))
						}
					case 1:
						asleep := <-queued
						for !asleep() {
							r.NoError(ctx.Err())
							goruntime.Gosched()
						}
						err := goes(ctx, w)
						if name == "Free" {
							r.ErrorIs(err, window.ErrHeld)
							r.Zero(team.Of(r.World).Arena().Quarantined(), "the window was freed all the same")
						}
					default:
						if name == "Free" {
							r.NoError(w.Free(ctx))
						}
					}
				})
				if name == "Free" {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, window.ErrHeld)
				}
			})
		})
	}
}

func TestUnlockAfterFreeReturnsErrFreed(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int](ctx, r, 1)
		held, err := w.Lock(ctx, r.Me, window.Shared)
		r.NoError(err)
		r.ErrorIs(w.Free(ctx), window.ErrHeld)
		r.ErrorIs(held.Unlock(ctx), window.ErrFreed)
		_, err = w.Lock(ctx, r.Me, window.Shared)
		r.ErrorIs(err, window.ErrFreed)
	})
}
