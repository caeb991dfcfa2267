package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestInquiryTellsMemberOfBrokenTeam(t *testing.T) {
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
				r.ErrorAs(err, &e)
				r.Equal(1, e.Rank)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	}
}

// TestJobRemembersNoErrorOfAFreedTeam has messages come for a team that this rank has freed, and for one that
// it may still make.
func TestJobRemembersNoErrorOfAFreedTeam(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		team, err := r.World.Split(ctx, 0, 0)
		r.NoError(err)
		below, err := team.Split(ctx, 0, 0)
		r.NoError(err)
		freed := []string{runtime.NameOf(team), runtime.NameOf(below)}
		r.NoError(below.Free(ctx))
		r.NoError(team.Free(ctx))
		for _, name := range freed {
			runtime.ToldBroken(r.Job, name)
		}
		r.Zero(runtime.BrokenTeams(r.Job))
		next := runtime.NextSplit(r.World)
		runtime.ToldBroken(r.Job, next+".1.0") // of a team that is to be split from the next one
		r.Equal(1, runtime.BrokenTeams(r.Job))
		runtime.ToldBroken(r.Job, next)
		r.Equal(2, runtime.BrokenTeams(r.Job))
		team, err = r.World.Split(ctx, 0, 0)
		r.NoError(err)
		r.Equal(next, runtime.NameOf(team))
		r.ErrorIs(team.Barrier(ctx), runtime.ErrTeamBroken)
		r.Equal(1, runtime.BrokenTeams(r.Job))
	})
}

func TestMismatchAfterReturnNamesNoClose(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		var first error
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				first = r.World.Barrier(ctx)
			}
		})
		require.ErrorIs(t, first, runtime.ErrMismatch)
		require.ErrorContains(t, first, "rank 0 called Barrier")
		require.ErrorContains(t, first, "'s body returned, or called Close")
		if err != nil { // from a rank that returned from its body and found the mismatch itself
			require.ErrorContains(t, err, "'s body returned, or called Close")
		}
	})
}
