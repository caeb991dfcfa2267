//go:build linux

package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/runtime"
)

// envVictim names the rank that a test of survive kills.
const envVictim = "GOPGAS_TEST_VICTIM"

// envFall makes the victim of survive kill itself. envReady names a file that the victim
// makes before.
const (
	envFall  = "GOPGAS_TEST_FALL"
	envReady = "GOPGAS_TEST_READY"
)

// meet has all ranks meet, and prints their places.
func meet(ctx context.Context, job *runtime.Job) error {
	fmt.Printf("rank %d of %d\n", job.World().Rank(), job.World().Size())
	return job.World().Barrier(ctx)
}

// survive prints a line once all ranks have met, and what it gets of the victim's death.
func survive(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	if err := world.Barrier(ctx); err != nil {
		return err
	}
	fmt.Println("ready")
	if fmt.Sprint(world.Rank()) == os.Getenv(envVictim) {
		if os.Getenv(envFall) != "" {
			_ = os.WriteFile(os.Getenv(envReady), nil, 0o600)
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		select {}
	}
	err := world.Barrier(ctx)
	var gone *runtime.RankError
	if errors.As(err, &gone) && errors.Is(err, runtime.ErrRankDead) {
		fmt.Printf("rank %d is dead\n", gone.Rank)
		fmt.Printf("launcher lost: %v\n", errors.Is(err, runtime.ErrLauncherLost))
	}
	return err
}

func failAtRankZero(ctx context.Context, job *runtime.Job) error {
	if job.World().Rank() == 0 {
		return errors.New("no more")
	}
	return job.World().Barrier(ctx)
}

// stay fails at rank 0 and never ends at the others.
func stay(_ context.Context, job *runtime.Job) error {
	if job.World().Rank() == 0 {
		return errors.New("no more")
	}
	select {}
}

func TestProcessesJoinWithoutALauncher(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		for _, provider := range []string{"auto", "tcp"} {
			t.Run(host+"/"+provider, func(t *testing.T) {
				h := newHand(t, 3, host)
				h.endWell(h.ranks("meet", 0, 2, "GRUN_PROVIDER="+provider)...)
			})
		}
	}
}

func TestRanksAnyGetAllNumbers(t *testing.T) {
	h := newHand(t, 4, "127.0.0.1")
	var all []*started
	var text string
	for range 4 {
		all = append(all, h.start("meet", "GRUN_RANK=any"))
	}
	h.endWell(all...)
	for _, p := range all {
		text += p.text()
	}
	for rank := range 4 {
		require.Contains(t, text, fmt.Sprintf("rank %d of 4\n", rank))
	}
}

func TestTorchrunsVariablesStartAJob(t *testing.T) {
	h := newHand(t, 2, "127.0.0.1")
	host, port, err := net.SplitHostPort(strings.TrimPrefix(h.vars[0], "GRUN_ADDR="))
	require.NoError(t, err)
	var all []*started
	for rank := range 2 {
		all = append(all, h.start("meet", "GRUN_ADDR=", "GRUN_SIZE=", "GRUN_VERBOSE=1", fmt.Sprint("RANK=", rank), "WORLD_SIZE=2", "LOCAL_RANK=0",
			"MASTER_ADDR="+host, "MASTER_PORT="+port))
	}
	h.endWell(all...)
	require.Contains(t, all[1].text(), "gopgas: rank 1 of 2 on ")
	require.Contains(t, all[1].text(), "local rank 1 of 2")
	require.Contains(t, all[1].text(), "started by torchrun")
}

func TestPartOfTorchrunsVariablesIsAWorldOfOne(t *testing.T) {
	h := newHand(t, 2, "127.0.0.1")
	p := h.start("meet", "GRUN_ADDR=", "GRUN_SIZE=", "GRUN_VERBOSE=1", "RANK=1", "WORLD_SIZE=2")
	h.endWell(p)
	require.Contains(t, p.text(), "rank 0 of 1")
	require.Contains(t, p.text(), "ignored RANK, WORLD_SIZE without MASTER_ADDR, MASTER_PORT")
}

func TestKilledRankIsDeadForAllOthers(t *testing.T) {
	for _, victim := range []int{0, 1, 2} {
		for _, provider := range []string{"auto", "tcp"} {
			t.Run(fmt.Sprint(victim, "/", provider), func(t *testing.T) {
				h := newHand(t, 3, "127.0.0.1")
				all := h.ranks("survive", 0, 2, fmt.Sprint(envVictim, "=", victim), "GRUN_PROVIDER="+provider)
				for _, p := range all {
					h.await(p, "ready")
				}
				require.NoError(t, all[victim].cmd.Process.Kill())
				for rank, p := range all {
					if rank != victim {
						h.fails(p, fmt.Sprintf("rank %d is dead\n", victim), fmt.Sprint("launcher lost: ", victim == 0), "its process ended")
					}
				}
			})
		}
	}
}

func TestStoppedRankZeroIsUnreachable(t *testing.T) {
	t.Parallel()
	h := newHand(t, 2, "127.0.0.1")
	all := h.ranks("survive", 0, 1, envVictim+"=0", "GRUN_PEER_TIMEOUT=5s", "GRUN_PROVIDER=shm") // a busy rank responds within it
	for _, p := range all {
		h.await(p, "ready")
	}
	require.NoError(t, all[0].cmd.Process.Signal(syscall.SIGSTOP))
	h.fails(all[1], "rank 0: rank is unreachable, and the rendezvous with it (it did not respond within 5s)")
}

func TestErrorAtRankZeroAbortsAllOthers(t *testing.T) {
	h := newHand(t, 3, "127.0.0.1")
	for rank, p := range h.ranks("fail", 0, 2) {
		h.fails(p, "rank 0: no more")
		require.Equal(t, rank > 0, strings.Contains(p.text(), ": job aborted ("), p.text())
	}
}

func TestRankZeroNamesTheRanksThatDoNotLeave(t *testing.T) {
	t.Parallel()
	h := newHand(t, 3, "127.0.0.1")
	all := h.ranks("stay", 0, 2, "GRUN_PEER_TIMEOUT=2s")
	h.fails(all[0], "rank 0: no more", "rank 1: rank is unreachable (ranks 1-2 did not leave the job within 2s after rank 0, which hosts the rendezvous)")
}

func TestStartTimeoutNamesTheMissingRank(t *testing.T) {
	t.Parallel()
	h := newHand(t, 3, "127.0.0.1")
	all := h.ranks("meet", 0, 1, "GRUN_START_TIMEOUT=5s")
	code, text := h.ends(all[0])
	require.Equal(t, 1, code)
	require.Regexp(t, "rank 0 cannot join the job: job did not start: rank(s 1-| )2 did not join within 5s: start all ranks", text)
	h.fails(all[1], "rank 1 cannot join the job: job did not start: ") // on a busy machine it may come too late
}

func TestWrongSecretIsAStartError(t *testing.T) {
	h := newHand(t, 2, "127.0.0.1")
	first := h.start("meet", "GRUN_RANK=0")
	h.fails(h.start("meet", "GRUN_RANK=1", "GRUN_SECRET_FILE=", "GRUN_SECRET="+strings.Repeat("ab", 32)),
		"job did not start: bootstrap handshake failed: check that GRUN_ADDR and GRUN_SECRET (or GRUN_SECRET_FILE) are those of one job")
	h.endWell(h.start("meet", "GRUN_RANK=1"), first)
}

func TestSecretOfOthersOrNoneIsAnEnvError(t *testing.T) {
	h := newHand(t, 2, "127.0.0.1")
	h.fails(h.start("meet", "GRUN_RANK=0", "GRUN_SECRET_FILE="), "GRUN_SECRET_FILE", "od -An -vtx1 -N32 /dev/urandom")
	h.fails(h.start("meet", "GRUN_ADDR=", "GRUN_SIZE=", "GRUN_SECRET_FILE=", "RANK=0", "WORLD_SIZE=1", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=1"),
		"GRUN_SECRET_FILE", "od -An -vtx1 -N32 /dev/urandom")
	file := strings.TrimPrefix(h.vars[2], "GRUN_SECRET_FILE=")
	require.NoError(t, os.Chmod(file, 0o644))
	h.fails(h.start("meet", "GRUN_RANK=0"), "chmod 600 "+file)
}

func TestPortOfAnotherProcessIsAStartError(t *testing.T) {
	h := newHand(t, 2, "127.0.0.1")
	l, err := net.Listen("tcp", strings.TrimPrefix(h.vars[0], "GRUN_ADDR="))
	require.NoError(t, err)
	defer l.Close()
	h.fails(h.start("meet", "GRUN_RANK=0"), "job did not start: host the rendezvous at 127.0.0.1:", "another process listens there")
	h.fails(h.start("meet", "GRUN_RANK=0", "GRUN_ADDR=203.0.113.77:7000"), "job did not start: ", "the address is not of this host")
}

// TestSecondJobAtOneAddressIsRefused has a job run while another one starts.
func TestSecondJobAtOneAddressIsRefused(t *testing.T) {
	h := newHand(t, 2, "127.0.0.1")
	all := h.ranks("survive", 0, 1, envVictim+"=1")
	for _, p := range all {
		h.await(p, "ready")
	}
	h.fails(h.start("meet", "GRUN_RANK=0"), "another process listens there")
	h.fails(h.start("meet", "GRUN_RANK=1"), "rank 1 cannot join the job: this rank has joined its job before")
	h.fails(h.start("meet", "GRUN_RANK=any"), "this process cannot join the job: job did not start: this process may not join: all 2 ranks have joined")
	h.fails(h.start("meet", "GRUN_RANK=2", "GRUN_SIZE=3"), "it expects a job of 3 ranks, and the job has 2")
	require.NoError(t, all[1].cmd.Process.Kill())
	h.fails(all[0], "rank 1 is dead\n")
}

// TestJobByHandLeavesNothingBehind runs rank 0 in this process, whose TestMain looks for
// goroutines and descriptors that are left.
func TestJobByHandLeavesNothingBehind(t *testing.T) {
	h := newHand(t, 2, "127.0.0.1")
	other := h.start("meet", "GRUN_RANK=1")
	for _, v := range append(h.vars, "GRUN_RANK=0") {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	require.NoError(t, runtime.Run(h.ctx, meet))
	h.endWell(other)
}

func TestStartErrorHasItsKindAndRanks(t *testing.T) {
	h := newHand(t, 2, "127.0.0.1")
	for _, v := range append(h.vars, "GRUN_RANK=1", "GRUN_START_TIMEOUT=100ms") {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	_, err := runtime.Init(t.Context())
	require.ErrorIs(t, err, runtime.ErrStart)
	var start *runtime.StartError
	require.ErrorAs(t, err, &start)
	require.Equal(t, []int{0}, start.Missing)
	_, err = runtime.Init(t.Context(), runtime.WithStartTimeout(time.Millisecond))
	require.ErrorContains(t, err, "start timeout of 1ms")
}
