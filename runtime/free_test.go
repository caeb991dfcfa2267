package runtime_test

import (
	"context"
	"errors"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
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

// TestFreedTeamReturnsErrTeamFreed though a member has died since, perhaps while others were in Free. Of 12
// members some pass the flags of others on.
func TestFreedTeamReturnsErrTeamFreed(t *testing.T) {
	try := func(t *testing.T, c testjob.Config) {
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
	}
	testjob.Each(t, 2, try)
	testjob.EachTransport(t, 12, try)
}

// TestCanceledFreeBreaksTeam has rank 0 give Free up before any other member calls it. Members that meet
// rank 0 free the team. All others learn of the break.
func TestCanceledFreeBreaksTeam(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		gone := make(chan struct{})
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			after := runtime.ErrTeamBroken
			if r.Me == 0 {
				over, cancel := context.WithCancel(ctx)
				cancel()
				r.ErrorIs(team.Free(over), context.Canceled)
				close(gone)
			} else {
				<-gone
				if err := team.Free(ctx); err == nil {
					after = runtime.ErrTeamFreed
				} else {
					r.ErrorIs(err, runtime.ErrTeamBroken)
				}
			}
			r.ErrorIs(team.Barrier(ctx), after)
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

// TestFreeWaitsForAStartedCallThatFails at one member. All members free the team.
func TestFreeWaitsForAStartedCallThatFails(t *testing.T) {
	failure := errors.New("failed at one member")
	testjob.Each(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for range 5 {
				half, err := r.World.Split(ctx, 0, 0)
				r.NoError(err)
				call := start(ctx, team.Of(half), func(ctx context.Context, _ team.Key) error {
					for r.Me == 1 && !runtime.Waits(half) {
						goruntime.Gosched()
					}
					if r.Me == 1 {
						return failure
					}
					return nil
				})
				if err := half.Free(ctx); r.Me == 1 {
					r.ErrorIs(err, runtime.ErrTeamBroken)
				}
				err = call.wait(ctx)
				if r.Me == 1 {
					r.ErrorIs(err, failure)
				}
				r.ErrorIs(half.Barrier(ctx), runtime.ErrTeamFreed)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	})
}

// TestFreeOfAWholeTeamMakesNoExchange has a gate catch the launcher's messages to rank 0 about exchanges
// of the team. Split's exchange is one of the world.
func TestFreeOfAWholeTeamMakesNoExchange(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		gate := &runtime.Gate{}
		behind := func(ctx context.Context, body runtime.Body) error {
			return runtime.RunLocalBehind(ctx, c.Ranks, gate, body, c.Options()...)
		}
		require.NoError(t, testjob.RunBy(t.Context(), behind, func(ctx context.Context, job *runtime.Job) error {
			team, err := job.World().Split(ctx, 0, 0)
			if err != nil || job.World().Rank() != 0 {
				return errors.Join(err, team.Free(ctx))
			}
			over, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			caught := gate.Hold(team.Name() + "/")
			go func() {
				select {
				case <-caught:
					cancel(errors.New("Free made an exchange"))
				case <-over.Done():
				}
			}()
			return team.Free(over)
		}))
	})
}

// TestMembersThatAreConnectedMakeNoCallsForABarrierAndFree counts. The members of the team are those of the
// world in the same order, whose barrier connects the same ones. With several providers, a member sends a request.
func TestMembersThatAreConnectedMakeNoCallsForABarrierAndFree(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			r.NoError(r.World.Barrier(ctx))
			half, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			before := runtime.CallsOf(r.Job)
			r.NoError(half.Barrier(ctx))
			r.NoError(half.Free(ctx))
			if len(team.Of(r.World).Providers()) == 1 {
				r.Equal(before, runtime.CallsOf(r.Job))
			}
			r.NoError(r.World.Barrier(ctx), "until here no rank has begun to close")
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
