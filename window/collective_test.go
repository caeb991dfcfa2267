package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// both makes a team of all ranks, so that the world stays whole when the team
// breaks, and a window of it. All ranks have both when it returns: the news of a
// broken team may come before the end of a call that other ranks have left.
func both(ctx context.Context, r *testjob.Rank) (*runtime.Team, *window.Window[int]) {
	team, err := r.World.Split(ctx, 0, r.Me)
	r.NoError(err)
	w, err := window.Allocate[int](ctx, team, 4)
	r.NoError(err)
	r.NoError(r.World.Barrier(ctx))
	return team, w
}

func TestDifferentCollectiveCallsReturnErrMismatchAtEveryRank(t *testing.T) {
	calls := map[string]func(context.Context, *runtime.Team, *window.Window[int]) error{
		"Barrier": func(ctx context.Context, team *runtime.Team, _ *window.Window[int]) error { return team.Barrier(ctx) },
		"Free":    func(ctx context.Context, _ *runtime.Team, w *window.Window[int]) error { return w.Free(ctx) },
		"Allocate": func(ctx context.Context, team *runtime.Team, _ *window.Window[int]) error {
			_, err := window.Allocate[int](ctx, team, 1)
			return err
		},
		"Exchange": func(ctx context.Context, team *runtime.Team, _ *window.Window[int]) error {
			_, err := team.Exchange(ctx, nil)
			return err
		},
		"Team.Free": func(ctx context.Context, team *runtime.Team, _ *window.Window[int]) error { return team.Free(ctx) },
		"Split": func(ctx context.Context, team *runtime.Team, _ *window.Window[int]) error {
			_, err := team.Split(ctx, 0, 0)
			return err
		},
	}
	for name, other := range calls {
		t.Run(name, func(t *testing.T) {
			testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
				team, w := both(ctx, r)
				var err error
				if r.Me == r.N/2 {
					err = other(ctx, team, w)
				} else {
					err = w.Fence(ctx)
				}
				if err == nil {
					// All ranks had come when this rank left; the next call
					// returns the news.
					err = team.Barrier(ctx)
				}
				r.ErrorIs(err, runtime.ErrMismatch)
				r.ErrorContains(err, "Fence")
				r.ErrorContains(err, name)
				r.ErrorIs(team.Barrier(ctx), runtime.ErrTeamBroken, "at all, from now on")
				if name != "Free" {
					r.ErrorIs(w.Fence(ctx), runtime.ErrTeamBroken)
				}
				r.NoError(r.World.Barrier(ctx), "other teams go on")
				again, err := r.World.Split(ctx, 0, 0)
				r.NoError(err)
				r.NoError(again.Barrier(ctx))
			})
		})
	}
}

func TestCanceledFenceBreaksItsTeamOnly(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) { c.Run(t, cancelFence(make(chan struct{}))) })
}

// cancelFence has rank 0 give up a fence to which no other rank has come.
func cancelFence(gone chan struct{}) testjob.Body {
	return func(ctx context.Context, r *testjob.Rank) {
		team, w := both(ctx, r)
		mine, err := window.Allocate[int](ctx, r.World, 1)
		r.NoError(err)
		if r.Me == 0 {
			over, cancel := context.WithCancel(ctx)
			cancel()
			r.ErrorIs(w.Fence(over), context.Canceled)
			close(gone)
		} else {
			<-gone
			err := w.Fence(ctx)
			if err == nil {
				err = team.Barrier(ctx) // the news had not arrived
			}
			r.ErrorIs(err, runtime.ErrTeamBroken)
			var broken *runtime.TeamError
			r.ErrorAs(err, &broken)
			r.Zero(broken.Rank)
			r.Equal("Fence", broken.Call)
		}
		r.ErrorIs(team.Barrier(ctx), runtime.ErrTeamBroken)
		r.NoError(w.PutValue(ctx, r.Right(), 0, 1), "one-sided operations go on")
		r.NoError(w.Flush(ctx, r.Right()))
		r.NoError(mine.Fence(ctx))
	}
}
