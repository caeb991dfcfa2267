//go:build linux

package runtime_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/launcher"
	"github.com/gopgas/gopgas/runtime"
)

func tenBarriers(ctx context.Context, r *testjob.Rank) {
	for range 10 {
		r.NoError(r.World.Barrier(ctx))
	}
}

func TestBarriersOverTLS(t *testing.T) {
	for _, c := range []testjob.Config{
		{Provider: "tcp", TLS: true, Ranks: 4},
		{Provider: "auto", TLS: true, Ranks: 3, Hosts: "aab"},
		{Provider: "loop", TLS: true, Ranks: 2},
	} {
		t.Run(c.String(), func(t *testing.T) { c.Run(t, tenBarriers) })
	}
}

func TestProcessesJoinByTLS(t *testing.T) {
	for _, provider := range []string{"tcp", "shm"} {
		testjob.Job{Ranks: 3, Provider: provider, Env: []string{bootstrap.EnvTLS + "=1"}}.Run(t, "barriers")
	}
}

func TestTLSIsRefusedOnProviderThatDoesNotEncrypt(t *testing.T) {
	err := runtime.RunLocal(t.Context(), 2, func(context.Context, *runtime.Job) error { return nil },
		runtime.WithProvider("ibv"), runtime.WithTLS(), runtime.WithHosts("a", "b"))
	require.ErrorContains(t, err, "provider ibv does not encrypt")
	require.ErrorContains(t, err, "choose provider tcp")
}

// TestRanksWithAndWithoutTLSAreRefused starts one rank with TLS and one without. The
// error of the later one names the other.
func TestRanksWithAndWithoutTLSAreRefused(t *testing.T) {
	ctx := testwatch.Context(t, testwatch.Processes(testwatch.Marked(envMain+"=1")))
	exe, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	result, err := launcher.Run(ctx, launcher.Spec{
		Programs: []launcher.Program{{Path: exe, N: 1, Env: []string{bootstrap.EnvTLS + "=1"}}, {Path: exe, N: 1}},
		Env:      []string{envMain + "=1", bootstrap.EnvHeap + "=1M", bootstrap.EnvProvider + "=tcp"}, Stdout: &out, Stderr: &out,
	})
	require.NoError(t, err, "%s", &out)
	require.NoError(t, ctx.Err(), "%s", &out)
	require.Equal(t, 1, result.ExitCode, "%s", &out)
	require.Regexp(t, "rank 0 may not join: it uses TLS, but rank 1 does not|rank 1 may not join: rank 0 uses TLS, but it does not", out.String())
	require.Contains(t, out.String(), "give TLS to all ranks or to none, by grun --tls, GRUN_TLS=1 or runtime.WithTLS")
}

func TestProcessesJoinByTLSWithoutALauncher(t *testing.T) {
	h := newHand(t, 3, "127.0.0.1")
	h.endWell(h.ranks("meet", 0, 2, "GRUN_PROVIDER=tcp", "GRUN_TLS=1")...)
}

// TestRendezvousOfRankZeroRefusesRankWithoutTLS starts rank 0 with TLS, and rank 1 without it
// or with another secret. Rank 0 goes on to wait for the right rank 1.
func TestRendezvousOfRankZeroRefusesRankWithoutTLS(t *testing.T) {
	for vars, want := range map[string]string{
		"GRUN_TLS=0": "rank 1 may not join: rank 0 uses TLS, but it does not: give TLS to all ranks or to none",
		"GRUN_TLS=1": "the peer has another secret: give all ranks of the job the same one",
	} {
		t.Run(vars, func(t *testing.T) {
			h := newHand(t, 2, "127.0.0.1")
			zero := h.start("meet", "GRUN_RANK=0", "GRUN_TLS=1")
			one := []string{"GRUN_RANK=1", vars}
			if vars == "GRUN_TLS=1" {
				one = append(one, "GRUN_SECRET_FILE=", "GRUN_SECRET="+strings.Repeat("07", bootstrap.SecretSize))
			}
			h.fails(h.start("meet", one...), want)
			h.endWell(h.start("meet", "GRUN_RANK=1", "GRUN_TLS=1"), zero)
		})
	}
}
