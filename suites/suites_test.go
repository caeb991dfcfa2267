package suites

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/window"
)

func TestMain(m *testing.M) { testjob.Main(m, nil) }

// everywhere runs a program of n ranks on mapped and queued memory, and over tcp.
func everywhere(t *testing.T, n int, body testjob.Body) {
	near := "shm"
	if testwatch.Race {
		near = "loop"
	}
	for _, c := range []testjob.Config{{Provider: near, Ranks: n}, {Provider: near, Queued: true, Ranks: n}, {Provider: "tcp", Ranks: n}} {
		t.Run(c.String(), func(t *testing.T) { c.Run(t, body) })
	}
}

func allocate[T any](ctx context.Context, r *testjob.Rank, n int, opts ...window.Option) *window.Window[T] {
	w, err := window.Allocate[T](ctx, r.World, n, opts...)
	r.NoError(err)
	return w
}

// filled returns n numbers from first on.
func filled(n int, first int64) []int64 {
	s := make([]int64, n)
	for i := range s {
		s[i] = first + int64(i)
	}
	return s
}

// waitFor waits until this rank's element holds v or more.
func waitFor(ctx context.Context, r *testjob.Rank, w *window.Window[int64], index int, v int64) {
	_, _, err := window.WaitUntil(ctx, w, window.Elements[int64]{At: []int{index}, Condition: window.AtLeast, Value: v})
	r.NoError(err)
}
