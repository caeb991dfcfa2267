package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestFreeOfWorldReturnsErrTeam(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		r.ErrorIs(r.World.Free(ctx), runtime.ErrTeam)
		none, err := r.World.Split(ctx, -1, 0)
		r.NoError(err)
		r.ErrorIs(none.Free(ctx), runtime.ErrTeam)
		r.NoError(r.World.Barrier(ctx))
	})
}

// TestSubteamsAreFreedByTheirMembersAlone has ranks outside of the team take no part.
func TestSubteamsAreFreedByTheirMembersAlone(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		team, err := r.World.Split(ctx, r.Me%2, 0)
		r.NoError(err)
		r.NoError(team.Barrier(ctx))
		if r.Me%2 == 0 {
			r.NoError(team.Free(ctx))
			r.ErrorIs(team.Barrier(ctx), runtime.ErrTeamFreed)
		} else {
			r.NoError(team.Barrier(ctx))
		}
		r.NoError(r.World.Barrier(ctx))
	})
}

// TestFreedTeamReturnsErrTeamFreed though a member has died since.
func TestFreedTeamReturnsErrTeamFreed(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			r.NoError(team.Free(ctx))
			if r.Me == r.N-1 {
				r.Die()
			}
			r.ErrorIs(r.World.Barrier(ctx), runtime.ErrRankDead)
			r.ErrorIs(team.Barrier(ctx), runtime.ErrTeamFreed)
		})
		require.ErrorContains(t, err, "ended without returning")
	})
}

// TestCanceledFreeBreaksTeam has rank 0 give Free up before any other member calls it.
func TestCanceledFreeBreaksTeam(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		gone := make(chan struct{})
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			if r.Me == 0 {
				over, cancel := context.WithCancel(ctx)
				cancel()
				r.ErrorIs(team.Free(over), context.Canceled)
				close(gone)
			} else {
				<-gone
				err := team.Free(ctx)
				r.ErrorIs(err, runtime.ErrTeamBroken)
				r.NotErrorIs(err, runtime.ErrTeamFreed)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

func TestTeamWithDeadMemberIsNotFreed(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			if r.Me == r.N-1 {
				r.Die()
			}
			r.ErrorIs(team.Free(ctx), runtime.ErrRankDead)
		})
		require.ErrorContains(t, err, "ended without returning")
	})
}
