//go:build linux

package testjob

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/launcher"
)

func TestMain(m *testing.M) {
	Main(m, map[string]Body{
		"hello": func(ctx context.Context, r *Rank) {
			fmt.Printf("hello from %d of %d\n", r.Me, r.N)
			r.NoError(r.World.Barrier(ctx))
		},
		"assert": func(ctx context.Context, r *Rank) { r.Equal(0, r.Me, "only rank 0 is right") },
		"hangs":  hangs,
		"stuck":  stuck,
		"die": func(ctx context.Context, r *Rank) {
			if r.Me == 1 {
				r.Die()
			}
			r.Error(r.World.Barrier(ctx))
		},
	})
}

func TestSamplesHoldEveryKindOfTransport(t *testing.T) {
	t.Setenv("GOPGAS_SOAK", "")
	for _, name := range []string{"TestA", "TestB", "TestC"} {
		kinds, counts := map[string]bool{}, map[int]bool{}
		list := Matrix(name, 1)
		for _, c := range list[:len(list)-1] {
			counts[c.Ranks] = true
			kinds[c.kind()] = true
		}
		require.Contains(t, Strained(list[len(list)-1].Ranks), list[len(list)-1])
		require.Subset(t, kinds, map[string]bool{"mapped": true, "tcp": true, "queued": true, "nic": true})
		require.Greater(t, len(counts), len(sizesFrom(1))/2)
	}
	for _, c := range Matrix("TestA", 3) {
		require.GreaterOrEqual(t, c.Ranks, 3)
	}
}

// TestSamplesOfManyTestsHoldEveryPair expects each transport with each number of ranks in some
// sample of a package with a hundred tests.
func TestSamplesOfManyTestsHoldEveryPair(t *testing.T) {
	t.Setenv("GOPGAS_SOAK", "")
	pairs := map[Config]bool{}
	for i := range 100 {
		for _, c := range Matrix(fmt.Sprint("TestOfNumber", i), 1) {
			pairs[c] = true
		}
	}
	for _, n := range sizesFrom(1) {
		for _, c := range append(Transports(n), Strained(n)...) {
			require.Contains(t, pairs, c)
		}
	}
}

func TestShareDealsEveryTransportToSomePart(t *testing.T) {
	for _, parts := range []int{1, 3, 10, 20} {
		dealt := map[string]int{}
		for part := range parts {
			share := Share("TestOf"+t.Name(), 2, part, parts)
			require.NotEmpty(t, share, "part %d of %d", part, parts)
			for _, c := range share {
				dealt[c.String()]++
			}
		}
		for _, c := range transports("TestOf"+t.Name(), 2) {
			require.NotZero(t, dealt[c.String()], "%v in %d parts", c, parts)
		}
	}
}

func TestSoakingRunsEveryPair(t *testing.T) {
	t.Setenv("GOPGAS_SOAK", "1")
	all := len(Transports(1)) + len(Strained(1))
	require.Len(t, Matrix("TestA", 1), all*len(sizes))
	require.Len(t, Matrix("TestA", 4), all*4)
}

func TestOnlyTheNamedConfigurationsRun(t *testing.T) {
	t.Setenv("GOPGAS_ONLY", "tcp-shallow")
	require.Len(t, Matrix("TestA", 1), len(sizesFrom(1)))
	for _, c := range Matrix("TestA", 1) {
		require.Equal(t, Config{Provider: "tcp", Shallow: true, Ranks: c.Ranks}, c)
	}
	t.Setenv("GOPGAS_ONLY", "none of them")
	require.Empty(t, Matrix("TestA", 1))
}

func TestRanksOfOneProcessRunOnEveryTransport(t *testing.T) {
	All(t, 1, func(ctx context.Context, r *Rank) {
		r.Equal(r.Me, (r.Left()+1)%r.N)
		r.Equal(r.Me, (r.Right()+r.N-1)%r.N)
		r.NoError(r.World.Barrier(ctx))
	})
}

func TestTryReturnsTheDeathOfARank(t *testing.T) {
	err := Config{Provider: "loop", Ranks: 2}.Try(t, func(ctx context.Context, r *Rank) {
		if r.Me == 1 {
			r.Die()
		}
		r.Error(r.World.Barrier(ctx))
	})
	require.ErrorContains(t, err, "rank 1: body ended without returning")
}

func TestRanksAreProcesses(t *testing.T) {
	for _, provider := range []string{"", "shm", "tcp"} {
		t.Log(provider)
		out := Job{Ranks: 3, Provider: provider}.Try(t, "hello")
		require.Zero(t, out.ExitCode, out.Output)
		for rank := range 3 {
			require.Contains(t, out.Output, fmt.Sprintf("[%d] hello from %d of 3\n", rank, rank))
		}
	}
	Job{Ranks: 2, Queued: true}.Run(t, "hello")
}

func TestRunShowsAFailedAssertionOfAProcess(t *testing.T) {
	out := Job{Ranks: 2}.Try(t, "assert")
	require.Equal(t, 1, out.ExitCode)
	require.Contains(t, out.Output, "only rank 0 is right")
	out = Job{Ranks: 1}.Try(t, "no such body")
	require.Equal(t, 2, out.ExitCode)
	require.Contains(t, out.Output, `no body "no such body"`)
}

func TestDieKillsTheProcess(t *testing.T) {
	out := Job{Ranks: 2}.Try(t, "die")
	require.Equal(t, []launcher.Failure{{Rank: 1, Host: out.Failures[0].Host, Code: 128 + int(unix.SIGKILL),
		Signal: unix.SIGKILL, Reason: "died of SIGKILL"}}, out.Failures)
}

func TestLeaksAreFound(t *testing.T) {
	before := openFiles()
	require.Empty(t, leaks(before))
	fd, err := unix.MemfdCreate("gopgas-leak", 0)
	require.NoError(t, err)
	require.NoError(t, unix.Ftruncate(fd, int64(os.Getpagesize())))
	mem, err := unix.Mmap(fd, 0, os.Getpagesize(), unix.PROT_READ, unix.MAP_SHARED)
	require.NoError(t, err)
	stop := make(chan struct{})
	go func() { <-stop }()
	normal := os.Getenv("GOPGAS_PATIENCE")
	t.Setenv("GOPGAS_PATIENCE", impatience)
	found := leaks(before)
	t.Setenv("GOPGAS_PATIENCE", normal)
	close(stop)
	require.NoError(t, unix.Munmap(mem))
	require.NoError(t, unix.Close(fd))
	require.Len(t, found, 3)
	require.Equal(t, 1, report(found))
	require.Zero(t, report(leaks(before)))
}

func TestEachApartRunsEveryProvider(t *testing.T) {
	t.Setenv("GOPGAS_SOAK", "")
	run := func(t *testing.T) (names []string) {
		EachApart(t, func(_ *testing.T, c Config) { names = append(names, c.Provider+strconv.FormatBool(c.Queued)) })
		return names
	}
	require.ElementsMatch(t, []string{"autofalse", "tcpfalse", nearAndNIC() + "false", "looptrue"}, run(t))
	t.Setenv("GOPGAS_SOAK", "1")
	require.Len(t, run(t), len(Apart()))
}
