package runtime_test

import (
	"bytes"
	"context"
	"os"
	goruntime "runtime"
	"testing"

	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// neighborsOf returns the ranks that a rank of examples/hello connects to, and those that it
// connects to or that connect to it. They are above and below it in the tree of the barrier,
// and beside it.
func neighborsOf(r *testjob.Rank) (out, all map[int]bool) {
	out, all = map[int]bool{r.Right(): true}, map[int]bool{r.Right(): true, r.Left(): true}
	for other := range r.N {
		above := func(a, b int) bool { return b > 0 && (b-1)/runtime.TreeArity == a }
		if above(other, r.Me) || above(r.Me, other) {
			out[other], all[other] = true, true
		}
	}
	return out, all
}

// neighbors does what examples/hello does. It then compares this rank's calls, descriptors,
// goroutines and mappings with the number of ranks that it talks to.
func neighbors(ctx context.Context, r *testjob.Rank) {
	w, err := window.Allocate[int](ctx, r.World, 1)
	r.NoError(err)
	r.NoError(w.PutValue(ctx, r.Right(), 0, r.Me))
	r.NoError(w.Fence(ctx))
	r.Equal(r.Left(), w.Local()[0])

	out, all := neighborsOf(r)
	calls := 0
	if os.Getenv(bootstrap.EnvProvider) == "tcp" {
		calls = len(out) + 1 // to connect, and for the window's region. That of the barrier came with the connection.
	}
	r.LessOrEqual(runtime.CallsOf(r.Job), int64(calls), "rank %d talks to %d ranks", r.Me, len(out))
	files, err := os.ReadDir("/proc/self/fd")
	r.NoError(err)
	maps, err := os.ReadFile("/proc/self/maps")
	r.NoError(err)
	r.LessOrEqual(len(files), 20+2*len(all), "rank %d talks to %d ranks", r.Me, len(all))
	r.LessOrEqual(goruntime.NumGoroutine(), 20+2*len(all), "rank %d talks to %d ranks", r.Me, len(all))
	r.LessOrEqual(bytes.Count(maps, []byte("/memfd:")), 10+2*len(all), "rank %d talks to %d ranks", r.Me, len(all))
	r.NoError(r.World.Barrier(ctx), "until here no rank has begun to close")
}

// A rank that talks to all of 64 has more of each.
func TestStateOfARankGrowsWithItsNeighbors(t *testing.T) {
	ranks := 64
	if testwatch.Race {
		ranks = 33 // fewer would all meet at the first one
	}
	for _, provider := range []string{"shm", "tcp"} {
		t.Run(provider, func(t *testing.T) {
			testjob.Job{Ranks: ranks, Provider: provider}.Run(t, "neighbors")
		})
	}
}
