package runtime_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/launcher"
	"github.com/gopgas/gopgas/runtime"
)

// envMain has the test binary be a program whose main function is runtime.Main.
const envMain = "GOPGAS_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" {
		runtime.Main(exitAtRankOne)
		return
	}
	testjob.Main(m, nil)
}

// exitAtRankOne ends rank 1's goroutine; the others wait for it.
func exitAtRankOne(ctx context.Context, job *runtime.Job) error {
	if job.World().Rank() == 1 {
		goruntime.Goexit()
	}
	err := job.World().Barrier(ctx)
	fmt.Println("barrier:", err)
	return err
}

func TestMainWhoseBodyEndsItsGoroutineEndsTheJob(t *testing.T) {
	ctx, cancel := testjob.WithWatchdog(t.Context())
	defer cancel()
	exe, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	result, err := launcher.Run(ctx, launcher.Spec{
		Programs: []launcher.Program{{Path: exe, N: 2}},
		Env:      []string{envMain + "=1", bootstrap.EnvHeap + "=1M"}, Stdout: &out, Stderr: &out,
	})
	require.NoError(t, err, "%s", &out)
	require.NoError(t, ctx.Err(), "%s", &out)
	require.Equal(t, 1, result.ExitCode, "%s", &out)
	require.Equal(t, 1, result.Failures[0].Rank, "rank 0 only follows: %s", result.Summary())
	require.Contains(t, out.String(), "rank 1: body ended without returning")
	require.Contains(t, out.String(), "barrier: rank 1: rank is dead (its body ended without returning)")
}

// placed has this process be the only rank of a job. It returns what a rank
// that gave up said.
func placed(t *testing.T) (aborts <-chan string) {
	causes := make(chan string, 1)
	place := bootstrap.Env{JobID: "test", Size: 1, LocalSize: 1, LocalCores: 1, Secret: make([]byte, bootstrap.SecretSize)}
	server := bootstrap.NewServer(1, place.Secret, bootstrap.Hooks{Aborted: func(_ int, cause string) { causes <- cause }})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	place.Addr = l.Addr().String()
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.NoError(t, <-served)
	})
	for _, v := range place.Vars() {
		name, value, _ := bytes.Cut([]byte(v), []byte("="))
		t.Setenv(string(name), string(value))
	}
	return causes
}

func TestRunWhoseBodyEndsItsGoroutineTellsTheLauncher(t *testing.T) {
	aborts := placed(t)
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

func TestASecondRunOfAProcessSaysThatThereIsOne(t *testing.T) {
	placed(t)
	body := func(context.Context, *runtime.Job) error { return nil }
	require.NoError(t, runtime.Run(t.Context(), body))
	require.ErrorIs(t, runtime.Run(t.Context(), body), runtime.ErrJoinedBefore)
	_, err := runtime.Init(t.Context())
	require.ErrorIs(t, err, runtime.ErrJoinedBefore)
}

func TestAPanicOfABodyIsNotSwallowed(t *testing.T) {
	require.PanicsWithValue(t, "boom", func() {
		_ = runtime.Run(t.Context(), func(_ context.Context, job *runtime.Job) error {
			t.Cleanup(func() { require.NoError(t, job.Close(context.Background())) })
			panic("boom")
		})
	})
}
