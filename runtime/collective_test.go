package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestExchangeGivesAllBytesToAllRanks(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		for round := range 5 {
			all, err := r.World.Exchange(ctx, fmt.Appendf(nil, "%d of %d", r.Me, round))
			r.NoError(err)
			r.Len(all, r.N)
			for from, b := range all {
				r.Equal(fmt.Sprintf("%d of %d", from, round), string(b))
			}
		}
		all, err := r.World.Exchange(ctx, nil)
		r.NoError(err)
		r.Empty(all[r.Right()])
	})
}

func TestSplitGroupsByColorAndOrdersByKey(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		team, err := r.World.Split(ctx, r.Me%3, -r.Me)
		r.NoError(err)
		r.Equal((r.N-r.Me%3+2)/3, team.Size())
		for i := range team.Size() {
			rank, err := team.WorldRank(i)
			r.NoError(err)
			r.Equal(r.Me%3, rank%3)
			if i > 0 {
				before, err := team.WorldRank(i - 1)
				r.NoError(err)
				r.Less(rank, before, "the larger rank has the smaller key")
			}
		}
		mine, err := team.WorldRank(team.Rank())
		r.NoError(err)
		r.Equal(r.Me, mine)
		for _, wrong := range []int{-1, team.Size()} {
			_, err := team.WorldRank(wrong)
			r.ErrorIs(err, runtime.ErrRange)
		}
		r.NoError(team.Barrier(ctx))
		deeper, err := team.Split(ctx, 0, team.Rank())
		r.NoError(err)
		r.Equal(team.Rank(), deeper.Rank())
		r.NotEqual(team.Name(), deeper.Name())
		r.NoError(deeper.Barrier(ctx))
	})
}

func TestSplitWithNegativeColorReturnsNil(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		color := -1
		if r.Me == 0 {
			color = 4
		}
		team, err := r.World.Split(ctx, color, 0)
		r.NoError(err)
		r.Equal(r.Me == 0, team != nil)
		if team != nil {
			r.Equal(1, team.Size())
			r.NoError(team.Barrier(ctx))
			return
		}
		r.Equal(-1, team.Rank())
		r.Zero(team.Size())
		r.ErrorIs(team.Barrier(ctx), runtime.ErrTeam)
		_, err = team.Exchange(ctx, nil)
		r.ErrorIs(err, runtime.ErrTeam)
		_, err = team.Split(ctx, 0, 0)
		r.ErrorIs(err, runtime.ErrTeam)
		_, err = team.WorldRank(0)
		r.ErrorIs(err, runtime.ErrRange)
	})
}

func TestTwoBlockingCallsAtOnceReturnErrMismatch(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		refused := make(chan struct{})
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			if r.Me > 0 {
				<-refused // so that rank 0's first call must wait
				r.NoError(team.Barrier(ctx))
				return
			}
			calls := make(chan error, 2)
			for range 2 {
				go func() { calls <- team.Barrier(ctx) }()
			}
			first := <-calls
			close(refused)
			r.ErrorIs(first, runtime.ErrMismatch)
			r.ErrorContains(first, "one at a time")
			r.NoError(<-calls, "the other one is none the worse")
		})
	})
}

// TestCanceledBarrierReleasesNoBarrierEarly cancels one rank's barriers at any moment.
// If a barrier returns nil, all members must have arrived at it.
func TestCanceledBarrierReleasesNoBarrierEarly(t *testing.T) {
	onePlaceOrSeveral(t, func(t *testing.T, c testjob.Config) {
		for range 5 {
			arrived := make([]atomic.Int64, c.Ranks)
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				team, err := r.World.Split(ctx, 0, 0)
				r.NoError(err)
				mine, cancel := context.WithCancelCause(ctx)
				defer cancel(nil)
				cause := errors.New("enough of barriers")
				if r.Me == 0 {
					time.AfterFunc(time.Duration(rand.Int64N(int64(3*time.Millisecond))), func() { cancel(cause) })
				}
				for round := int64(1); err == nil; round++ {
					arrived[r.Me].Store(round)
					if err = team.Barrier(mine); err == nil {
						for rank := range arrived {
							r.GreaterOrEqual(arrived[rank].Load(), round, "released without rank %d", rank)
						}
					}
				}
				if r.Me == 0 {
					r.ErrorIs(err, cause)
					return
				}
				r.ErrorIs(err, runtime.ErrTeamBroken)
				var broken *runtime.TeamError
				r.ErrorAs(err, &broken)
				r.Zero(broken.Rank)
				r.ErrorContains(err, cause.Error())
				r.ErrorIs(team.Barrier(ctx), runtime.ErrTeamBroken)
			})
		}
	})
}

// onePlaceOrSeveral runs f as a subtest with two or more ranks, on one host and on
// several.
func onePlaceOrSeveral(t *testing.T, f func(t *testing.T, c testjob.Config)) {
	testjob.Each(t, 2, f)
	testjob.EachApart(t, func(t *testing.T, c testjob.Config) {
		if c.Ranks > 1 {
			f(t, c)
		}
	})
}

func TestDeadRankEndsBarriersOfAllHosts(t *testing.T) {
	const hosts = "abbaccc"
	for dead := range len(hosts) {
		c := testjob.Config{Provider: "auto", Ranks: len(hosts), Hosts: hosts}
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			var err error
			for calls := 0; err == nil; calls++ {
				if r.Me == dead && calls == 5 {
					r.Die()
				}
				err = r.World.Barrier(ctx)
			}
			r.ErrorIs(err, runtime.ErrRankDead)
			var gone *runtime.RankError
			r.ErrorAs(err, &gone)
			r.Equal(dead, gone.Rank)
		})
		require.ErrorContains(t, err, fmt.Sprintf("rank %d: body ended without returning", dead))
		require.Equal(t, 1, strings.Count(err.Error(), "body ended without returning"), "%v", err)
	}
}

func TestContextCauseNamesDeadRank(t *testing.T) {
	err := testjob.Config{Provider: "loop", Ranks: 3}.Try(t, func(ctx context.Context, r *testjob.Rank) {
		if r.Me == 1 {
			r.Die()
		}
		<-r.Job.Context().Done()
		var e *runtime.RankError
		r.ErrorAs(context.Cause(r.Job.Context()), &e)
		r.Equal(1, e.Rank)
		r.NoError(ctx.Err(), "the body's own context goes on")
		r.ErrorIs(r.World.Barrier(ctx), runtime.ErrRankDead)
	})
	require.ErrorContains(t, err, "rank 1: body ended without returning")
}

func TestErrorOfBodyAbortsJob(t *testing.T) {
	wrong := errors.New("the input is wrong")
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		others := make(chan error, 3)
		err := testjob.RunLocal(t.Context(), 3, func(ctx context.Context, job *runtime.Job) error {
			if job.World().Rank() == 2 {
				return wrong
			}
			err := job.World().Barrier(ctx)
			others <- err
			return err
		}, c.Options()...)
		require.ErrorIs(t, err, wrong)
		for range 2 {
			err := <-others
			require.ErrorIs(t, err, runtime.ErrAborted)
			require.ErrorContains(t, err, wrong.Error())
		}
	})
}

func TestCloseWaitsForAllRanks(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		var late atomic.Bool
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == r.N-1 {
				time.Sleep(5 * time.Millisecond)
				late.Store(true)
			}
			r.NoError(r.Job.Close(ctx))
			r.True(late.Load())
			r.NoError(r.Job.Close(ctx), "closing again does nothing")
			r.ErrorIs(r.World.Barrier(ctx), runtime.ErrClosed)
			r.Error(r.Job.Context().Err())
		})
	})
}
