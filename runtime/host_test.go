package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
)

func TestOnlyRanksOfOneHostShareMemory(t *testing.T) {
	hosts := []string{"a", "b", "a", "c", "b"}
	require.NoError(t, local(t, len(hosts), func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		inner := team.Of(world)
		if !slices.Equal(inner.Hosts, []int{0, 1, 0, 3, 1}) || inner.Mapped {
			return fmt.Errorf("hosts %v, mapped: %v", inner.Hosts, inner.Mapped)
		}
		me := world.Rank()
		for rank, host := range hosts {
			p, err := inner.Peer(ctx, rank)
			if err != nil {
				return err
			}
			want := "tcp"
			switch {
			case rank == me:
				want = "self"
			case host == hosts[me]:
				want = "loop"
			}
			if p.Provider() != want || (p.Bell() == nil) != (want == "tcp") {
				return fmt.Errorf("rank %d reaches rank %d over %s, want %s", me, rank, p.Provider(), want)
			}
		}
		half, err := world.Split(ctx, me%2, -me)
		if err != nil {
			return err
		}
		want := [][]int{{1, 0, 0}, {3, 1}}[me%2] // from the last rank to the first
		if got := team.Of(half).Hosts; !slices.Equal(got, want) {
			return fmt.Errorf("hosts of a half: %v, want %v", got, want)
		}
		return world.Barrier(ctx)
	}, runtime.WithHosts(hosts...)))
}

func TestSplitHostMakesATeamOfEachHost(t *testing.T) {
	hosts := []string{"a", "b", "a", "c", "b"}
	require.NoError(t, local(t, len(hosts), func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		near, err := world.SplitHost(ctx)
		if err != nil {
			return err
		}
		for rank, host := range hosts {
			there, err := world.Translate(rank, near)
			if host != hosts[world.Rank()] {
				if !errors.Is(err, runtime.ErrTeam) {
					return fmt.Errorf("rank %d of another host: %w", rank, err)
				}
				continue
			}
			if want := rank / 2; hosts[0] == host && there != want || err != nil {
				return fmt.Errorf("rank %d is rank %d of its host, want %d: %w", rank, there, want, err)
			}
			if back, err := near.Translate(there, world); back != rank || err != nil {
				return fmt.Errorf("rank %d of a host is rank %d of the world, want %d: %w", there, back, rank, err)
			}
		}
		if _, err := near.Translate(near.Size(), world); !errors.Is(err, runtime.ErrRange) {
			return fmt.Errorf("a rank beyond the team: %w", err)
		}
		if _, err := world.Translate(0, nil); !errors.Is(err, runtime.ErrTeam) {
			return fmt.Errorf("no team: %w", err)
		}
		var none *runtime.Team
		if _, err := none.SplitHost(ctx); !errors.Is(err, runtime.ErrTeam) {
			return fmt.Errorf("a split of no team: %w", err)
		}
		return errors.Join(near.Free(ctx), world.Barrier(ctx))
	}, runtime.WithHosts(hosts...)))
}

func TestRanksOfOneMachineAreOnOneHost(t *testing.T) {
	for _, provider := range []string{"loop", "tcp"} {
		require.NoError(t, local(t, 3, func(ctx context.Context, job *runtime.Job) error {
			inner := team.Of(job.World())
			if !slices.Equal(inner.Hosts, []int{0, 0, 0}) || inner.Mapped != (provider == "loop") {
				return fmt.Errorf("hosts %v, mapped: %v", inner.Hosts, inner.Mapped)
			}
			return job.World().Barrier(ctx)
		}, runtime.WithProvider(provider)))
	}
}

func TestNamedProviderConnectsAllHosts(t *testing.T) {
	require.NoError(t, local(t, 2, func(ctx context.Context, job *runtime.Job) error {
		p, err := team.Of(job.World()).Peer(ctx, 1-job.World().Rank())
		if err == nil && p.Provider() != "loop" {
			err = fmt.Errorf("over %s", p.Provider())
		}
		return err
	}, runtime.WithProvider("loop"), runtime.WithHosts("a", "b")))
}

func TestHostsAreNamedForAllRanks(t *testing.T) {
	nothing := func(context.Context, *runtime.Job) error { return nil }
	require.ErrorContains(t, local(t, 2, nothing, runtime.WithHosts("a")), "GRUN_HOSTS")
	require.ErrorContains(t, local(t, 1, nothing, runtime.WithHosts()), "a name for each rank")
	t.Setenv("GRUN_HOSTS", "a,,b")
	require.ErrorContains(t, local(t, 3, nothing), "GRUN_HOSTS")
	t.Setenv("GRUN_HOSTS", "x,y")
	require.NoError(t, local(t, 2, func(_ context.Context, job *runtime.Job) error {
		if hosts := team.Of(job.World()).Hosts; !slices.Equal(hosts, []int{0, 1}) {
			return fmt.Errorf("hosts %v", hosts)
		}
		return nil
	}))
}

// byHost splits the world by host. It returns for each part whether all members found
// it mapped.
func byHost(t *testing.T, hosts []string, opts ...runtime.Option) []bool {
	mapped := make([]bool, len(hosts))
	require.NoError(t, local(t, len(hosts), func(ctx context.Context, job *runtime.Job) error {
		me := job.World().Rank()
		mine, err := job.World().Split(ctx, int(hosts[me][0]), 0)
		if err != nil {
			return err
		}
		mapped[me] = team.Of(mine).Mapped
		for range 20 {
			if err := mine.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	}, append(opts, runtime.WithHosts(hosts...))...))
	return mapped
}

func TestTeamWithinHostIsMapped(t *testing.T) {
	hosts := []string{"a", "b", "a", "c", "b", "b"}
	require.Equal(t, []bool{true, true, true, true, true, true}, byHost(t, hosts))
	require.Equal(t, make([]bool, 6), byHost(t, hosts, runtime.WithFMAMax(0)))
	require.Equal(t, make([]bool, 6), byHost(t, hosts, runtime.WithProvider("tcp")))
}

func TestTeamWithUnmappedMemberIsNotMapped(t *testing.T) {
	hosts := []string{"a", "b", "a", "b", "a", "b"}
	var first atomic.Bool
	mapped := byHost(t, hosts, runtime.WithWrap(func(p driver.Provider) driver.Provider {
		if p.Name() == "loop" && !first.Swap(true) { // the provider of one rank
			return faulty.New(p, faulty.Plan{HideMapper: true})
		}
		return p
	}))
	require.NotEqual(t, mapped[0], mapped[1])
	for rank := 2; rank < len(hosts); rank++ {
		require.Equal(t, mapped[rank%2], mapped[rank])
	}
}
