package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// TestFirstCallOfConnectedMembersMakesNoCalls through the launcher: they map the memory of its messages, or know where
// it is. Over other devices, and with several providers, a member asks.
func TestFirstCallOfConnectedMembersMakesNoCalls(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			sum := []int{0}
			for again := range 3 {
				half, err := r.World.Split(ctx, 0, r.N-r.Me)
				r.NoError(err)
				before := runtime.CallsOf(r.Job)
				for range 3 {
					r.NoError(collectives.AllReduce(ctx, half, collectives.Sum[int](), []int{r.Me}, sum))
					r.Equal(r.N*(r.N-1)/2, sum[0])
				}
				if inner := team.Of(half); again > 0 && (inner.Mapped || inner.Extents != nil) {
					r.Equal(before, runtime.CallsOf(r.Job))
				}
				r.NoError(half.Free(ctx))
			}
			r.NoError(r.World.Barrier(ctx), "until here no rank has begun to close")
		})
	})
}

// TestOneRequestConnectsTwoMembersBothWays counts the requests of first calls in which all members meet at one of them.
func TestOneRequestConnectsTwoMembersBothWays(t *testing.T) {
	const n, center = 8, 5
	var barrier, reduction atomic.Int64
	require.NoError(t, local(t, n, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		before := runtime.CallsOf(job)
		if err := world.Barrier(ctx); err != nil {
			return err
		}
		barrier.Add(runtime.CallsOf(job) - before)
		half, err := world.Split(ctx, 0, (world.Rank()-center+n)%n)
		if err != nil {
			return err
		}
		before = runtime.CallsOf(job)
		if err := collectives.AllReduce(ctx, half, collectives.Sum[int](), []int{1}, []int{0}); err != nil {
			return err
		}
		reduction.Add(runtime.CallsOf(job) - before)
		return errors.Join(half.Free(ctx), world.Barrier(ctx))
	}, runtime.WithProvider("tcp"), runtime.WithCores(1), runtime.WithExpect(time.Hour)))
	require.EqualValues(t, n-1, barrier.Load())
	require.EqualValues(t, n-2, reduction.Load(), "rank 0 was connected to the center")
}

// peersOf returns the number of other ranks to which a rank has connected.
func peersOf(job *runtime.Job) (n int) {
	for _, p := range job.Stats() {
		if p.Peer != job.World().Rank() {
			n++
		}
	}
	return n
}

// TestFreeConnectsNobodyAfterAShortAllReduce of members that share cores: both meet at the first member.
func TestFreeConnectsNobodyAfterAShortAllReduce(t *testing.T) {
	for name, opts := range map[string][]runtime.Option{
		"mapped": {runtime.WithProvider("shm")}, "queued": {runtime.WithProvider("shm"), runtime.WithFMAMax(0)}, "tcp": {runtime.WithProvider("tcp")},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, local(t, 12, func(ctx context.Context, job *runtime.Job) error {
				world := job.World()
				half, err := world.Split(ctx, 0, (world.Rank()+5)%world.Size())
				if err != nil {
					return err
				}
				sum := []int{0}
				if err := collectives.AllReduce(ctx, half, collectives.Sum[int](), []int{1}, sum); err != nil {
					return err
				}
				before := peersOf(job)
				if err := errors.Join(half.Barrier(ctx), half.Free(ctx)); err != nil {
					return err
				}
				if after := peersOf(job); after != before {
					return fmt.Errorf("rank %d: %d peers before Free, %d after", world.Rank(), before, after)
				}
				return world.Barrier(ctx) // until here no rank has begun to close
			}, append(opts, runtime.WithCores(1))...))
		})
	}
}

// starMade splits the world in the opposite order. It compares the peers of each rank behind Split, and behind the
// first calls.
func starMade(ctx context.Context, r *testjob.Rank) {
	half, err := r.World.Split(ctx, 0, -r.Me)
	r.NoError(err)
	before, calls := peersOf(r.Job), runtime.CallsOf(r.Job)
	if half.Rank() == 0 {
		r.Equal(r.N-1, before)
	} else {
		r.True(runtime.KnowsFirst(half), "rank %d looks the first member's block up in its first call", r.Me)
	}
	sum := []int{0}
	r.NoError(collectives.AllReduce(ctx, half, collectives.Sum[int](), []int{1}, sum))
	r.NoError(half.Barrier(ctx))
	r.NoError(half.Free(ctx))
	r.Equal(before, peersOf(r.Job), "rank %d: peers behind Split, and behind the first calls", r.Me)
	r.Equal(calls, runtime.CallsOf(r.Job))
	r.NoError(r.World.Barrier(ctx), "until here no rank has begun to close")
}

// TestSplitConnectsMembersThatMeetAtTheFirst where they share a core and map each other's memory.
func TestSplitConnectsMembersThatMeetAtTheFirst(t *testing.T) {
	testjob.Job{Ranks: 12, Provider: "shm", Env: []string{bootstrap.EnvLocalCores + "=1"}}.Run(t, "star")
}

// TestLeaderConnectsToAStarOverTCPAlone has the leaders of two hosts connect for a barrier. Each connects to the
// other one, and to the members below it: fewer of them where the members of a host map each other's memory.
func TestLeaderConnectsToAStarOverTCPAlone(t *testing.T) {
	const onHost = 12
	hosts := runtime.WithHosts(append(slices.Repeat([]string{"a"}, onHost), slices.Repeat([]string{"b"}, onHost)...)...)
	for provider, want := range map[string]int{"shm,tcp": runtime.TreeArity + 1, "tcp": onHost} {
		t.Run(provider, func(t *testing.T) {
			require.NoError(t, local(t, 2*onHost, func(ctx context.Context, job *runtime.Job) error {
				world := job.World()
				err := world.Barrier(ctx)
				if peers := peersOf(job); world.Rank()%onHost == 0 && peers != want {
					err = errors.Join(err, fmt.Errorf("rank %d has %d peers, want %d", world.Rank(), peers, want))
				}
				return errors.Join(err, world.Barrier(ctx)) // until here no rank has begun to close
			}, runtime.WithProvider(provider), hosts, runtime.WithCores(1)))
		})
	}
}
