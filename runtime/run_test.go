//go:build linux

package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/launcher"
	"github.com/gopgas/gopgas/runtime"
)

// envMain turns the test binary into one of programs, which calls runtime.Main.
const envMain = "GOPGAS_TEST_MAIN"

var programs = map[string]runtime.Body{"exit": exitAtRankOne, "meet": meet, "survive": survive, "fail": failAtRankZero, "stay": stay,
	"again": joinAgain}

func TestMain(m *testing.M) {
	if name := os.Getenv(envMain); name != "" {
		runtime.Main(programs[name])
		return
	}
	testjob.Main(m, map[string]testjob.Body{"barriers": tenBarriers, "neighbors": neighbors, "star": starMade})
}

// exitAtRankOne ends rank 1's goroutine; all other ranks wait for it.
func exitAtRankOne(ctx context.Context, job *runtime.Job) error {
	if job.World().Rank() == 1 {
		goruntime.Goexit()
	}
	err := job.World().Barrier(ctx)
	fmt.Println("barrier:", err)
	return err
}

func TestGoexitInBodyOfMainEndsJob(t *testing.T) {
	ctx := testwatch.Context(t, testwatch.Processes(testwatch.Marked(envMain+"=exit")))
	exe, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	result, err := launcher.Run(ctx, launcher.Spec{
		Programs: []launcher.Program{{Path: exe, N: 2}},
		Env:      []string{envMain + "=exit", bootstrap.EnvHeap + "=1M"}, Stdout: &out, Stderr: &out, Grace: testwatch.Patience(),
	})
	require.NoError(t, err, "%s", &out)
	require.NoError(t, ctx.Err(), "%s", &out)
	require.Equal(t, 1, result.ExitCode, "%s", &out)
	require.Equal(t, 1, result.Failures[0].Rank, "rank 0 only follows: %s", result.Summary())
	require.Contains(t, out.String(), "rank 1: body ended without returning")
	require.Contains(t, out.String(), "barrier: rank 1: rank is dead (its body ended without returning)")
}

// placed makes this process rank 0 of a job of n. It returns the causes of aborts.
// through relays between the rank and its launcher.
func placed(t *testing.T, n int, through func(rank, launcher net.Conn)) (aborts <-chan string) {
	causes := make(chan string, 1)
	placedUnder(t, n, through, bootstrap.Hooks{Aborted: func(_ int, cause string) { causes <- cause }})
	return causes
}

// placedUnder makes this process rank 0 of a job of n, whose launcher calls hooks.
func placedUnder(t *testing.T, n int, through func(rank, launcher net.Conn), hooks bootstrap.Hooks) {
	place := bootstrap.Env{JobID: "test", Size: n, LocalSize: n, LocalCores: 1, Secret: make([]byte, bootstrap.SecretSize)}
	server := bootstrap.NewServer(n, place.Secret, hooks)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	place.Addr = l.Addr().String()
	var relays sync.WaitGroup
	relays.Go(func() {
		for rank, err := l.Accept(); err == nil; rank, err = l.Accept() {
			ours, theirs := net.Pipe()
			server.Attach(theirs)
			relays.Go(func() {
				_, _ = io.Copy(ours, rank)
				_ = ours.Close()
			})
			relays.Go(func() {
				through(rank, ours)
				_ = rank.Close()
			})
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		require.NoError(t, server.Close())
		relays.Wait()
	})
	for _, v := range place.Vars() {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
}

// whole relays all messages of the launcher.
func whole(rank, launcher net.Conn) { _, _ = io.Copy(rank, launcher) }

// welcome relays the launcher's messages until the rank has joined, and none later,
// like a launcher that was stopped then.
func welcome(rank, launcher net.Conn) {
	const challengeAndWelcome = 8 + 32 + 8 + 32 + 10
	_, _ = io.CopyN(rank, launcher, challengeAndWelcome)
	_, _ = io.Copy(io.Discard, launcher)
}

func TestSilentLauncherEndsInit(t *testing.T) {
	placed(t, 2, welcome)
	_, err := runtime.Init(t.Context(), runtime.WithPeerTimeout(time.Second))
	require.ErrorIs(t, err, runtime.ErrLauncherLost)
	require.ErrorIs(t, err, runtime.ErrAborted)
	require.ErrorContains(t, err, "launcher does not respond within 2s")
}

// TestRankWhoseInitFailsIsDeadForAllOthers has rank 1 send a card that rank 0 cannot read.
func TestRankWhoseInitFailsIsDeadForAllOthers(t *testing.T) {
	placed(t, 2, whole)
	ctx := testwatch.Context(t)
	conn, err := net.Dial("tcp", os.Getenv(bootstrap.EnvAddr))
	require.NoError(t, err)
	deaths := make(chan string, 1)
	other, err := bootstrap.NewClient(ctx, conn, make([]byte, bootstrap.SecretSize), 1,
		bootstrap.Events{Dead: func(_ int, cause string) { deaths <- cause }})
	require.NoError(t, err)
	go func() { _, _ = other.Exchange(ctx, "team/world", []int{0, 1}, []byte("no card")) }()
	_, err = runtime.Init(ctx)
	require.ErrorContains(t, err, "rank 0 cannot join the job: ")
	require.Equal(t, "it could not join: team world: card of rank 1: invalid character 'o' in literal null (expecting 'u')", <-deaths)
	require.NoError(t, other.Close(ctx))
}

func TestGoexitInBodyOfRunReportsDeath(t *testing.T) {
	aborts := placed(t, 1, whole)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = runtime.Run(context.Background(), func(context.Context, *runtime.Job) error {
			goruntime.Goexit()
			return nil
		})
		t.Error("Run returned")
	}()
	<-ended
	require.Equal(t, "its body ended without returning", <-aborts)
}

func TestSecondRunReturnsErrJoinedBefore(t *testing.T) {
	placed(t, 1, whole)
	body := func(context.Context, *runtime.Job) error { return nil }
	require.NoError(t, runtime.Run(t.Context(), body))
	require.ErrorIs(t, runtime.Run(t.Context(), body), runtime.ErrJoinedBefore)
	_, err := runtime.Init(t.Context())
	require.ErrorIs(t, err, runtime.ErrJoinedBefore)
}

func TestPanicOfBodyGoesOn(t *testing.T) {
	require.PanicsWithValue(t, "boom", func() {
		_ = runtime.Run(t.Context(), func(_ context.Context, job *runtime.Job) error {
			t.Cleanup(func() { require.NoError(t, job.Close(context.Background())) })
			panic("boom")
		})
	})
}
