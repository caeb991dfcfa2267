package collectives_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// usedBy returns how many bytes of its heap a rank uses.
func usedBy(r *testjob.Rank) int64 { return team.Of(r.World).Arena().Used() }

// liveOf makes a team, has it make calls of all kinds, and frees it.
func liveOf(ctx context.Context, r *testjob.Rank, seed uint64) *runtime.Team {
	team, err := r.World.Split(ctx, 0, -r.Me)
	r.NoError(err)
	within, rnd, list := *r, rand.New(rand.NewPCG(seed, 1)), allTrials()
	within.World, within.Me = team, team.Rank()
	for range 6 {
		try(ctx, &within, list[rnd.IntN(len(list))], draw(rnd, r.N, 3<<20))
	}
	x := make([]int, 1)
	ring, err := collectives.NewCart(ctx, team, []int{r.N}, []bool{true})
	r.NoError(err)
	r.NoError(collectives.NeighborAllToAll(ctx, ring.Graph, make([]int, 2000), make([]int, 2000)))
	started, err := collectives.Start(ctx, team, collectives.ScanCall(collectives.Sum[int](), x, x))
	r.NoError(err)
	r.NoError(team.Free(ctx))
	ended, err := started.Test()
	r.NoError(err)
	r.True(ended, "Free comes behind what was started")
	return team
}

// TestFreeOfTeamGivesBackItsMemory compares the heap before teams that were used in all
// ways, and after them.
func TestFreeOfTeamGivesBackItsMemory(t *testing.T) {
	run := func(t *testing.T, c testjob.Config) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			before := usedBy(r)
			for round := range testwatch.Rounds(3) {
				liveOf(ctx, r, seed+uint64(round))
			}
			r.Equal(before, usedBy(r))
		})
	}
	testjob.EachTransport(t, 4, run)
	testjob.EachApart(t, run)
}

func TestCallsOfFreedTeamReturnErrTeamFreed(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		team, err := r.World.Split(ctx, 0, 0)
		r.NoError(err)
		child, err := team.Split(ctx, 0, 0)
		r.NoError(err)
		x := make([]int, r.N)
		buffer, err := collectives.Alloc[int](team, 10)
		r.NoError(err)
		r.NoError(collectives.AllToAll(ctx, team, x, make([]int, r.N)))
		plan, err := collectives.Plan(ctx, team, collectives.BroadcastCall(0, x))
		r.NoError(err)
		r.NoError(team.Free(ctx))
		for name, call := range map[string]func() error{
			"Broadcast": func() error { return collectives.Broadcast(ctx, team, 0, x) },
			"Start": func() error {
				_, err := collectives.Start(ctx, team, collectives.BroadcastCall(0, x))
				return err
			},
			"Plan":    func() error { return plan.Run(ctx) },
			"Barrier": func() error { return team.Barrier(ctx) },
			"Split": func() error {
				_, err := team.Split(ctx, 0, 0)
				return err
			},
			"Allocate": func() error {
				_, err := window.Allocate[int](ctx, team, 1)
				return err
			},
			"OpenReader": func() error {
				_, err := rpipe.OpenReader[int](ctx, team, 0)
				return err
			},
			"Free": func() error { return team.Free(ctx) },
		} {
			err := call()
			r.ErrorIs(err, runtime.ErrTeamFreed, name)
			r.NotErrorIs(err, runtime.ErrTeamBroken, name)
			r.ErrorContains(err, team.Name())
		}
		r.NoError(buffer.Free())
		r.NoError(collectives.Broadcast(ctx, child, 0, x), "teams made of it go on")
		r.NoError(r.World.Barrier(ctx))
		r.NoError(child.Free(ctx))
	})
}

// TestFreeOfBrokenTeamGivesBackMemoryOfItsCalls has a member give up in the middle of calls
// of all lengths.
func TestFreeOfBrokenTeamGivesBackMemoryOfItsCalls(t *testing.T) {
	enough := errors.New("enough")
	run := func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			before := usedBy(r)
			for round := range 6 {
				team, err := r.World.Split(ctx, 0, 0)
				r.NoError(err)
				mine, cancel := context.WithCancelCause(ctx)
				if r.Me == round%r.N {
					time.AfterFunc(time.Duration(round)*time.Millisecond, func() { cancel(enough) })
				}
				sum, x := collectives.Sum[int](), make([]int, 1<<(4*round))
				var started *collectives.Request
				for err == nil {
					if started, err = collectives.Start(mine, team, collectives.AllReduceCall(sum, x, x)); err == nil {
						err = collectives.Gather(mine, team, 0, x, make([]int, r.N*len(x)))
					}
				}
				cancel(nil)
				r.True(errors.Is(err, enough) || errors.Is(err, runtime.ErrTeamBroken), "%v", err)
				r.NoError(team.Free(ctx))
				r.ErrorIs(team.Barrier(ctx), runtime.ErrTeamFreed)
				if started != nil {
					ended, _ := started.Test()
					r.True(ended)
				}
			}
			r.Equal(before, usedBy(r))
		})
	}
	testjob.EachTransport(t, 4, run)
	testjob.EachApart(t, run)
}

// TestFreeReturnsTheErrorOfAnEarlierCallOfAnotherMember frees the team all the same.
func TestFreeReturnsTheErrorOfAnEarlierCallOfAnotherMember(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			r.NoError(team.Barrier(ctx))
			r.NoError(r.World.Barrier(ctx), "all have left the call before")
			over, cancel := context.WithCancel(ctx)
			cancel()
			if r.Me == 0 {
				r.ErrorIs(collectives.Reduce(over, team, 0, collectives.Sum[int](), []int{1}, []int{0}), context.Canceled)
				r.NoError(team.Free(ctx))
			} else if err := team.Free(ctx); err != nil { // else it learned of the failure before
				var broken *runtime.TeamError
				r.ErrorAs(err, &broken)
				r.Equal(0, broken.Rank)
				r.ErrorIs(err, runtime.ErrTeamBroken)
			}
			r.ErrorIs(team.Barrier(ctx), runtime.ErrTeamFreed)
		})
	})
}

// goroutinesMade returns how many goroutines this process has started so far.
func goroutinesMade() uint64 {
	made := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(made)
	return made[0].Value.Uint64()
}

// TestFreeStartsNoGoroutine frees teams whose calls had a context that ends with the team. Other parts of the
// process may start goroutines in some of the lives.
func TestFreeStartsNoGoroutine(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		least, x := uint64(math.MaxUint64), []float64{1}
		for range 20 {
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			r.NoError(collectives.AllReduce(ctx, team, collectives.Sum[float64](), x, x, collectives.WithAlgorithm("recursive-doubling")))
			before := goroutinesMade()
			r.NoError(team.Free(ctx))
			least = min(least, goroutinesMade()-before)
		}
		r.Zero(least)
	})
}
