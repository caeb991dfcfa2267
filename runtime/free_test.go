package runtime_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"testing"
	"time"

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

// TestFreeAtTheCenterEndsIfAMemberGaveUp has rank 1 give Free up behind its arrival. Rank 0 hears of that once all
// have arrived. It keeps its memory of the team, which rank 1 may use.
func TestFreeAtTheCenterEndsIfAMemberGaveUp(t *testing.T) {
	for _, n := range []int{3, 12} {
		gate, gone := &runtime.Gate{}, make(chan struct{})
		behind := func(ctx context.Context, body runtime.Body) error {
			return runtime.RunLocalBehind(ctx, n, gate, body, runtime.WithCores(1))
		}
		require.NoError(t, testjob.RunBy(t.Context(), behind, func(ctx context.Context, job *runtime.Job) error {
			half, err := job.World().Split(ctx, 0, 0)
			if err != nil {
				return err
			}
			if half.Rank() == 0 {
				gate.Hold("team.break")
			}
			if err := half.Barrier(ctx); err != nil {
				return err
			}
			switch half.Rank() {
			case 0:
				<-gone
				err = centerGivesUp(ctx, gate, half)
			case 1:
				err = giveUpBehind(ctx, half, n-2)
				close(gone)
			default:
				if err = half.Free(ctx); errors.Is(err, runtime.ErrTeamBroken) {
					err = nil
				}
			}
			return errors.Join(err, job.World().Barrier(ctx))
		}))
	}
}

// giveUpBehind calls Free with a context that has ended, once others have arrived.
func giveUpBehind(ctx context.Context, half *runtime.Team, others int) error {
	poll(ctx, func() bool { return runtime.Arrived(half) == others })
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := half.Free(over); !errors.Is(err, context.Canceled) {
		return fmt.Errorf("rank 1 gave up, and Free returned %w", err)
	}
	return nil
}

// centerGivesUp arrives last, at rank 0, and lets the message come that the team is broken once all have arrived.
func centerGivesUp(ctx context.Context, gate *runtime.Gate, half *runtime.Team) error {
	arena := team.Of(half).Arena()
	before, opened := arena.Used(), make(chan struct{})
	go func() {
		defer close(opened)
		poll(ctx, func() bool { return runtime.Arrived(half) == 0 })
		gate.Open()
	}()
	err := half.Free(ctx)
	<-opened
	if !errors.Is(err, runtime.ErrTeamBroken) || ctx.Err() != nil {
		return fmt.Errorf("rank 1 gave up, and rank 0's Free returned %w", err)
	}
	if used := arena.Used(); used != before {
		return fmt.Errorf("%d bytes in use before Free, %d after", before, used)
	}
	return nil
}

// poll returns once ready is true, or ctx ends: then a later step fails.
func poll(ctx context.Context, ready func() bool) {
	for !ready() && ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
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
		require.NoError(t, testjob.RunBy(t.Context(), behind(gate, c), func(ctx context.Context, job *runtime.Job) error {
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
