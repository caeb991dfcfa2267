package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/runtime"
)

func TestSizesAreReadInEveryUnit(t *testing.T) {
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

func TestWrongOptionsSayWhatToDo(t *testing.T) {
	nothing := func(context.Context, *runtime.Job) error { return nil }
	require.ErrorContains(t, local(t, 1, nothing, runtime.WithHeap(1)), "need at least")
	require.ErrorContains(t, local(t, 1, nothing, runtime.WithProvider("carrier pigeon")), "choose auto, shm, tcp, ibv or loop")
	require.ErrorContains(t, local(t, 1, nothing, runtime.WithRDMA("mtu=1500")), "256, 512")
	require.ErrorIs(t, local(t, 0, nothing), runtime.ErrRange)
}

func TestAWrongEnvironmentSaysWhatToDo(t *testing.T) {
	nothing := func(context.Context, *runtime.Job) error { return nil }
	for name, text := range map[string]string{"GRUN_HEAP": "plenty", "GRUN_FMA_MAX": "x", "GRUN_PEER_TIMEOUT": "soon", "GRUN_RDMA": "speed=11"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, text)
			require.ErrorContains(t, local(t, 1, nothing), text)
		})
	}
	for name, text := range map[string]string{"GRUN_FMA_MAX": "-5", "GRUN_PEER_TIMEOUT": "-3s"} {
		t.Run("negative "+name, func(t *testing.T) {
			t.Setenv(name, text)
			require.ErrorContains(t, local(t, 1, nothing), text)
		})
	}
	t.Run("too small", func(t *testing.T) {
		t.Setenv("GRUN_HEAP", "4K")
		require.ErrorContains(t, local(t, 1, nothing), "need at least")
	})
}

func TestWithoutALauncherAProgramIsAWorldOfOne(t *testing.T) {
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
