package window_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// waits are all the ways to wait for a rank that is dead or unreachable.
var waits = map[string]func(ctx context.Context, r *testjob.Rank, w *window.Window[int], victim int) error{
	"fence": func(ctx context.Context, _ *testjob.Rank, w *window.Window[int], _ int) error { return w.Fence(ctx) },
	"free":  func(ctx context.Context, _ *testjob.Rank, w *window.Window[int], _ int) error { return w.Free(ctx) },
	"barrier": func(ctx context.Context, r *testjob.Rank, _ *window.Window[int], _ int) error {
		return r.World.Barrier(ctx)
	},
	"allocate": func(ctx context.Context, r *testjob.Rank, _ *window.Window[int], _ int) error {
		return attempt[int](ctx, r, 1)
	},
	"exchange": func(ctx context.Context, r *testjob.Rank, _ *window.Window[int], _ int) error {
		_, err := r.World.Exchange(ctx, nil)
		return err
	},
	"split": func(ctx context.Context, r *testjob.Rank, _ *window.Window[int], _ int) error {
		_, err := r.World.Split(ctx, 0, 0)
		return err
	},
	"notification": func(ctx context.Context, _ *testjob.Rank, w *window.Window[int], _ int) error {
		_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{5}, Value: 1})
		return err
	},
	"element": func(ctx context.Context, _ *testjob.Rank, w *window.Window[int], _ int) error {
		_, _, err := window.WaitUntil(ctx, w, window.Elements[int]{At: []int{0}, Value: -1})
		return err
	},
	"flush": func(ctx context.Context, r *testjob.Rank, w *window.Window[int], victim int) error {
		return repeat(ctx, func() error {
			return errors.Join(w.PutValue(ctx, victim, r.Me, 1), w.Flush(ctx, victim))
		})
	},
	"get on a queue": func(ctx context.Context, r *testjob.Rank, w *window.Window[int], victim int) error {
		return repeat(ctx, func() error {
			_, err := w.GetValue(ctx, victim, 0)
			return errors.Join(err, w.Flush(ctx, victim))
		})
	},
	"atomic": func(ctx context.Context, r *testjob.Rank, w *window.Window[int], victim int) error {
		return repeat(ctx, func() error {
			_, err := window.FetchAdd(ctx, w, victim, 0, 1)
			return errors.Join(err, w.Flush(ctx, victim))
		})
	},
}

// repeat calls f until it fails: this rank learns of a death within a second, not
// at once.
func repeat(ctx context.Context, f func() error) error {
	for ctx.Err() == nil {
		if err := f(); err != nil {
			return err
		}
		goruntime.Gosched()
	}
	return context.Cause(ctx)
}

func TestDeathOfARankEndsEveryWait(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					victim := r.N - 1
					w := allocate[int](ctx, r, r.N)
					r.NoError(w.PutValue(ctx, victim, r.Me, 1))
					err := w.Fence(ctx)
					if r.Me == victim {
						time.Sleep(2 * time.Millisecond) // most survivors wait by now
						r.Die()
					}
					start := time.Now()
					if err == nil { // the fence may already return it
						err = wait(ctx, r, w, victim)
					}
					dead(r, err, start, victim)
					if r.Me == 0 {
						t.Logf("known after %v", time.Since(start))
					}
				})
				require.ErrorContains(t, err, "ended without returning")
			})
		})
	}
}

func TestAbortEndsEveryWait(t *testing.T) {
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
				err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
					w := allocate[int](ctx, r, r.N)
					err := w.Fence(ctx)
					if r.Me == r.N-1 {
						r.Job.Abort(errors.New("the input is wrong"))
						return
					}
					if err == nil {
						// Without the body's context, so that the calls must notice.
						err = wait(context.WithoutCancel(ctx), r, w, r.N-1)
					}
					if errors.Is(err, runtime.ErrClosed) {
						// At a first contact a rank may learn that its peer has left
						// before it learns why.
						<-r.Job.Context().Done()
						err = w.Fence(ctx)
					}
					r.ErrorIs(err, runtime.ErrAborted)
					r.ErrorContains(err, "the input is wrong")
					r.ErrorIs(context.Cause(r.Job.Context()), runtime.ErrAborted)
				})
				require.ErrorIs(t, err, runtime.ErrAborted)
			})
		})
	}
}

func TestSurvivorsUseAWindowOfTheirTeam(t *testing.T) {
	testjob.Each(t, 3, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			color := 0
			if r.Me == r.N-1 {
				color = 1
			}
			team, err := r.World.Split(ctx, color, 0)
			r.NoError(err)
			w, err := window.Allocate[int](ctx, team, team.Size())
			r.NoError(err)
			if color == 1 {
				r.Die()
			}
			r.ErrorIs(r.World.Barrier(ctx), runtime.ErrRankDead)
			for range 10 {
				for to := range team.Size() {
					_, err := window.FetchAdd(ctx, w, to, team.Rank(), 1)
					r.NoError(err)
				}
				r.NoError(w.Fence(ctx))
			}
			for _, v := range w.Local() {
				r.Equal(10, v)
			}
			r.NoError(w.Free(ctx))
		})
		require.ErrorContains(t, err, "ended without returning")
	})
}
