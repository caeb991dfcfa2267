package runtime_test

import (
	"context"
	"math"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/runtime"
)

func TestParseSizeReadsEveryUnit(t *testing.T) {
	for text, want := range map[string]int64{
		"0": 0, "65536": 65536, "64K": 64 << 10, "64KiB": 64 << 10, "64kb": 64 << 10, "3m": 3 << 20, "2G": 2 << 30, "1TiB": 1 << 40,
	} {
		got, err := runtime.ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "K", "-1", "1.5G", "1X", "8Kib8", "99999999999999999999", "9999999999T", "1 G"} {
		_, err := runtime.ParseSize(text)
		require.ErrorContains(t, err, "is no size; write", text)
	}
}

func TestWrongOptionsNameAllowedValues(t *testing.T) {
	nothing := func(context.Context, *runtime.Job) error { return nil }
	require.ErrorContains(t, local(t, 1, nothing, runtime.WithHeap(1)), "need at least")
	for _, wrong := range []runtime.Option{runtime.WithHeap(1), runtime.WithFMAMax(-1), runtime.WithConnections(0), runtime.WithCores(0),
		runtime.WithPeerTimeout(0), runtime.WithStartTimeout(48 * time.Hour)} {
		require.ErrorIs(t, local(t, 1, nothing, wrong), runtime.ErrRange)
	}
	require.ErrorContains(t, local(t, 1, nothing, runtime.WithHeap(math.MaxInt64)), "at most")
	require.ErrorContains(t, local(t, 1, nothing, runtime.WithFMAMax(-1)), "at least 0")
	require.ErrorContains(t, local(t, 1, nothing, runtime.WithPeerTimeout(time.Nanosecond)), "need at least 100ms")
	require.ErrorContains(t, local(t, 1, nothing, runtime.WithProvider("carrier pigeon")), "choose auto, shm, tcp or ibv, or a list")
	require.ErrorContains(t, local(t, 1, nothing, runtime.WithRDMA("mtu=1500")), "256, 512")
	require.ErrorIs(t, local(t, 0, nothing), runtime.ErrRange)
}

func TestWrongEnvironmentNamesVariableAndAllowedValues(t *testing.T) {
	nothing := func(context.Context, *runtime.Job) error { return nil }
	for _, c := range []struct{ name, text, want string }{
		{"GRUN_PROVIDER", "pigeon", "choose auto, shm, tcp or ibv, or a list"},
		{"GRUN_CONNECTIONS", "many", "choose 1 to 16 connections"},
		{"GRUN_CONNECTIONS", "17", "choose 1 to 16 connections"},
		{"GRUN_PROVIDER", "shm,shm", "such as shm,ibv,tcp"},
		{"GRUN_PROVIDER", "auto,tcp", "such as shm,ibv,tcp"},
		{"GRUN_HEAP", "plenty", "512MiB"},
		{"GRUN_HEAP", "4K", "need at least 65536"},
		{"GRUN_HEAP", "9223372036854775807", "at most 70368744177664 (64 TiB)"},
		{"GRUN_HEAP", "8388607T", "at most 70368744177664 (64 TiB)"},
		{"GRUN_FMA_MAX", "x", "write 65536"},
		{"GRUN_FMA_MAX", "-5", "write 65536"},
		{"GRUN_FMA_MAX", "9223372036854775807", "at most"},
		{"GRUN_PEER_TIMEOUT", "soon", "30s"},
		{"GRUN_PEER_TIMEOUT", "-3s", "need at least 100ms"},
		{"GRUN_PEER_TIMEOUT", "1ns", "need at least 100ms"},
		{"GRUN_PEER_TIMEOUT", "99999h", "at most 24h"},
		{"GRUN_RDMA", "speed=11", "speed"},
		{"GRUN_ATOMICS", "gpu", "cpu or nic"},
		{"GRUN_HOSTS", "a,,b", "a name for each rank"},
		{"GRUN_STATS", "yes", "choose 0 or 1"},
		{"GRUN_TLS", "on", "choose 0 or 1"},
		{"GRUN_COLLECTIVES", "mesages", "choose messages"},
		{"GRUN_EXPLAIN", "colectives", "choose collectives"},
		{"GRUN_TUNED", "/no/such/file", "no such file"},
	} {
		t.Run(c.name+"="+c.text, func(t *testing.T) {
			t.Setenv(c.name, c.text)
			err := local(t, 1, nothing)
			var env *runtime.EnvError
			require.ErrorAs(t, err, &env)
			require.Equal(t, c.name, env.Name)
			require.Equal(t, c.text, env.Value)
			require.Contains(t, env.Want, c.want)
			require.ErrorContains(t, err, c.text)
		})
	}
}

func TestCorrectEnvironmentIsAccepted(t *testing.T) {
	file := t.TempDir() + "/table.json"
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for name, texts := range map[string][]string{
		"GRUN_HEAP": {"", "64K"}, "GRUN_FMA_MAX": {"0", "4096", "64K"}, "GRUN_PEER_TIMEOUT": {"100ms", "24h"}, "GRUN_ATOMICS": {"cpu"},
		"GRUN_STATS": {"", "0", "1"}, "GRUN_TLS": {"", "0", "1"}, "GRUN_COLLECTIVES": {"", "messages"}, "GRUN_EXPLAIN": {"", "collectives"}, "GRUN_TUNED": {"", "off", file},
	} {
		for _, text := range texts {
			t.Run(name+"="+text, func(t *testing.T) {
				t.Setenv(name, text)
				require.NoError(t, local(t, 1, func(context.Context, *runtime.Job) error { return nil }))
			})
		}
	}
}

func TestProgramWithoutLauncherIsWorldOfOne(t *testing.T) {
	ran := false
	require.NoError(t, runtime.Run(t.Context(), func(ctx context.Context, job *runtime.Job) error {
		ran = true
		require.Equal(t, 1, job.World().Size())
		return job.World().Barrier(ctx)
	}))
	require.True(t, ran)
	job, err := runtime.Init(t.Context(), runtime.WithProvider("loop"))
	require.NoError(t, err)
	require.NoError(t, job.Close(t.Context()))
}
