package runtime_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestAMemberThatMissedTheWordOfABrokenTeamHearsItWhenItWaits(t *testing.T) {
	gone := &runtime.RankError{Rank: 7, Kind: runtime.ErrUnreachable, Cause: "silent"}
	for _, unmade := range []bool{false, true} {
		testjob.Config{Provider: "loop", Ranks: 3}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 1 {
				runtime.BreakInSilence(team, gone, unmade)
			} else {
				err := team.Barrier(ctx)
				r.ErrorIs(err, runtime.ErrTeamBroken)
				r.ErrorIs(err, runtime.ErrUnreachable)
				var e *runtime.TeamError
				r.True(errors.As(err, &e))
				r.Equal(1, e.Rank)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	}
}

func TestARankWhoseBodyReturnedIsNotToldThatItCalledClose(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		if r.Me == 0 {
			err := r.World.Barrier(ctx)
			r.ErrorIs(err, runtime.ErrMismatch)
			r.ErrorContains(err, "rank 0 called Barrier")
			r.ErrorContains(err, "'s body returned, or called Close")
		}
	})
}
