//go:build linux

package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/window"
)

// without is a provider of a rank that has no device for it.
type without struct{ driver.Provider }

func (without) Open(context.Context, string, driver.Options) (driver.Context, error) {
	return nil, fmt.Errorf("%w: pulled out", driver.ErrNoDevice)
}

// lacking hides the provider of a name from the first rank that opens it, which is chosen by chance.
func lacking(name string) runtime.Option {
	first := make(chan bool, 1)
	first <- true
	return runtime.WithWrap(func(p driver.Provider) driver.Provider {
		select {
		case <-first:
		default:
			return p
		}
		if p.Name() != name {
			first <- true
			return p
		}
		return without{p}
	})
}

// ways returns by which provider each rank reaches each other one.
func ways(ctx context.Context, job *runtime.Job) (string, error) {
	var list []string
	for rank := range job.World().Size() {
		p, err := team.Of(job.World()).Peer(ctx, rank)
		if err != nil {
			return "", err
		}
		list = append(list, p.Provider())
	}
	return strings.Join(list, " "), nil
}

func TestEachPairUsesFirstProviderOfListThatJoinsIt(t *testing.T) {
	for list, want := range map[string][]string{
		"loop,tcp": {"self loop tcp", "loop self tcp", "tcp tcp self"},
		"tcp,loop": {"self tcp tcp", "tcp self tcp", "tcp tcp self"},
		"loop":     {"self loop loop", "loop self loop", "loop loop self"}, // the hosts are pretended
	} {
		t.Run(list, func(t *testing.T) {
			require.NoError(t, local(t, 3, func(ctx context.Context, job *runtime.Job) error {
				got, err := ways(ctx, job)
				if me := job.World().Rank(); err == nil && got != want[me] {
					err = fmt.Errorf("rank %d uses %s, want %s", me, got, want[me])
				}
				return err
			}, runtime.WithProvider(list), runtime.WithHosts("a", "a", "b")))
		})
	}
}

func TestRankWithoutDeviceUsesNextProviderOfList(t *testing.T) {
	var lost, others []string
	results := make(chan string, 3)
	require.NoError(t, local(t, 3, func(ctx context.Context, job *runtime.Job) error {
		got, err := ways(ctx, job)
		results <- got
		return err
	}, runtime.WithProvider("loop,tcp"), lacking("loop")))
	for range 3 {
		if got := <-results; strings.Contains(got, "loop") {
			others = append(others, got)
		} else {
			lost = append(lost, got)
		}
	}
	require.Len(t, lost, 1)
	for _, got := range others {
		require.Equal(t, 1, strings.Count(got, "loop"), got)
		require.Equal(t, 1, strings.Count(got, "tcp"), got)
	}
}

func TestRanksWithoutCommonProviderNameTheCause(t *testing.T) {
	nothing := func(context.Context, *runtime.Job) error { return nil }
	err := local(t, 3, nothing, runtime.WithProvider("loop,tcp"), runtime.WithHosts("a", "a", "b"), lacking("tcp"))
	require.ErrorIs(t, err, runtime.ErrUnreachable)
	require.ErrorContains(t, err, "provider loop,tcp does not join rank")
	require.ErrorContains(t, err, "has no tcp (no usable device: pulled out)")
	require.ErrorContains(t, err, "choose a list with tcp")
}

func TestListOfProvidersMustBeAlike(t *testing.T) {
	h := newHand(t, 2, "127.0.0.1")
	zero, one := h.start("meet", "GRUN_RANK=0", "GRUN_PROVIDER=tcp"), h.start("meet", "GRUN_RANK=1", "GRUN_PROVIDER=shm,tcp")
	h.fails(zero, "providers tcp at rank 0, shm,tcp at rank 1; give all ranks the same")
	h.fails(one, "providers shm,tcp at rank 1, tcp at rank 0; give all ranks the same")
}

// TestSilentProviderGivesWayToTheNext has tcp connect, but lose each first request.
func TestSilentProviderGivesWayToTheNext(t *testing.T) {
	require.NoError(t, local(t, 2, func(ctx context.Context, job *runtime.Job) error {
		got, err := ways(ctx, job)
		if want := [...]string{"self loop", "loop self"}[job.World().Rank()]; err == nil && got != want {
			err = fmt.Errorf("uses %s, want %s", got, want)
		}
		return err
	}, runtime.WithProvider("tcp,loop"), runtime.WithWrap(func(p driver.Provider) driver.Provider {
		if p.Name() != "tcp" {
			return p
		}
		return faulty.New(p, faulty.Plan{Cuts: []faulty.Cut{{Request: 1}}})
	})))
}

func TestWorldOnOneHostIsMappedWithSeveralProviders(t *testing.T) {
	require.NoError(t, local(t, 3, func(_ context.Context, job *runtime.Job) error {
		if !team.Of(job.World()).Mapped {
			return fmt.Errorf("rank %d does not map the world", job.World().Rank())
		}
		return nil
	}, runtime.WithProvider("loop,tcp")))
}

func TestDeviceAtomicsAreRefusedBesideOtherProviders(t *testing.T) {
	nothing := func(context.Context, *runtime.Job) error { return nil }
	err := local(t, 2, nothing, runtime.WithProvider("loop,tcp"), runtime.WithAtomics("nic"), asNIC())
	require.ErrorContains(t, err, "with the providers loop,tcp")
	require.ErrorContains(t, err, "choose one provider, such as ibv, or atomics by cpu")
	require.NoError(t, local(t, 2, nothing, runtime.WithProvider("tcp"), runtime.WithAtomics("nic"), asNIC()))
}

// asNIC makes tcp a device whose atomics and the CPU's must not be mixed.
func asNIC() runtime.Option {
	return runtime.WithWrap(func(p driver.Provider) driver.Provider {
		if p.Name() != "tcp" {
			return p
		}
		return faulty.New(p, faulty.Plan{HideExtendedAtomics: true, HideCoherentAtomics: true, HideMapper: true})
	})
}

// TestAtomicsOverMemoryAndDeviceLoseNoUpdate has ranks on the target's host add by mapped
// memory, and one on another host by requests to the target's CPU.
func TestAtomicsOverMemoryAndDeviceLoseNoUpdate(t *testing.T) {
	rounds := int64(testwatch.Rounds(2000))
	c := testjob.Config{Provider: "loop,tcp", Ranks: 3, Hosts: "aab"}
	require.NoError(t, local(t, c.Ranks, func(ctx context.Context, job *runtime.Job) error {
		w, err := window.Allocate[int64](ctx, job.World(), 1)
		if err != nil {
			return err
		}
		for range rounds {
			if _, err := window.FetchAdd(ctx, w, 0, 0, 1); err != nil {
				return err
			}
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if sum := w.Local()[0]; job.World().Rank() == 0 && sum != 3*rounds {
			return fmt.Errorf("%d updates, want %d", sum, 3*rounds)
		}
		return nil
	}, append(c.Options(), asNIC())...))
}
