package collectives_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/collectives/internal/board"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// treeArity is the most ranks below another in the tree of barriers.
const treeArity = 8

// TestShortAllReduceConnectsRanksToRankZero counts the ranks to which each rank of a job of 64
// has connected: its neighbors in the tree of the barrier and rank 0. Rank 0 connects to all.
func TestShortAllReduceConnectsRanksToRankZero(t *testing.T) {
	ranks := 64
	if testwatch.Race {
		ranks = 24
	}
	testjob.Job{Ranks: ranks, Provider: "shm"}.Run(t, "short reductions")
}

// TestScansConnectRanksToTheirNeighborsAndRankZero counts likewise after scans in a row.
func TestScansConnectRanksToTheirNeighborsAndRankZero(t *testing.T) {
	ranks := 64
	if testwatch.Race {
		ranks = 24
	}
	testjob.Job{Ranks: ranks, Provider: "shm"}.Run(t, "scans")
}

// scans is the body of that test.
func scans(ctx context.Context, r *testjob.Rank) {
	sum, x := collectives.Sum[int](), []int{0}
	for i := range 300 { // more turns than a member is ahead
		r.NoError(collectives.Scan(ctx, r.World, sum, []int{i}, x))
		r.Equal(i*(r.Me+1), x[0])
	}
	r.LessOrEqual(connections(r), rootNeighbors(r)+2, "rank %d", r.Me)
	r.NoError(r.World.Barrier(ctx))
}

// TestRootedCallsConnectRanksToTheRoot counts likewise after calls with a root, in a row and
// between short reductions. Rank 0 is the root.
func TestRootedCallsConnectRanksToTheRoot(t *testing.T) {
	ranks := 64
	if testwatch.Race {
		ranks = 24
	}
	testjob.Job{Ranks: ranks, Provider: "shm"}.Run(t, "rooted calls")
}

// TestShortMessagesCommitNoRings counts the bytes that each rank commits for a short reduction by messages.
// The rings of one channel take 1 MiB. A team commits nothing where one before it was like it. Ranks on pretended hosts
// of their own have two providers.
func TestShortMessagesCommitNoRings(t *testing.T) {
	for _, job := range []testjob.Job{{Ranks: 8, Provider: "tcp"}, {Ranks: 3, Provider: "auto", Hosts: "abc"}} {
		t.Run(job.String(), func(t *testing.T) { job.Run(t, "short messages") })
	}
}

// shortMessages is the body of that test.
func shortMessages(ctx context.Context, r *testjob.Rank) {
	sum := func(n int) {
		x := slices.Repeat([]int64{1}, n)
		r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), x, x))
		r.EqualValues(r.N, x[n-1])
	}
	for again := range 3 {
		before := committed(r)
		half, err := r.World.Split(ctx, 0, 0)
		r.NoError(err)
		r.NoError(collectives.AllReduce(ctx, half, collectives.Sum[int](), []int{1}, []int{0}))
		if again > 0 {
			r.Equal(before, committed(r))
		}
		r.NoError(half.Free(ctx))
	}
	before := committed(r)
	sum(1)
	r.LessOrEqual(committed(r)-before, int64(16<<10*(r.N-1)), "slots of each other rank")
	r.NoError(r.World.Barrier(ctx), "until here no rank has sent a long message")
	sum(1 << 17)
	r.Greater(committed(r)-before, int64(128<<10), "rings")
	r.NoError(r.World.Barrier(ctx))
}

// committed returns the bytes of this rank's heap that occupy memory.
func committed(r *testjob.Rank) (bytes int64) {
	files, err := os.ReadDir("/proc/self/fd")
	r.NoError(err)
	for _, f := range files {
		path := "/proc/self/fd/" + f.Name()
		var st unix.Stat_t
		if to, _ := os.Readlink(path); strings.Contains(to, "gopgas-heap") && unix.Stat(path, &st) == nil {
			bytes += st.Blocks * 512
		}
	}
	r.Positive(bytes)
	return bytes
}

// turnsPastAll is more turns than a member is ahead of another.
const turnsPastAll = board.Ahead + 8

// rootedCalls is the body of that test.
func rootedCalls(ctx context.Context, r *testjob.Rank) {
	sum, one := collectives.Sum[int](), []int{0}
	blocks := make([]int, r.N)
	rooted := []func() error{
		func() error { return collectives.Broadcast(ctx, r.World, 0, one) },
		func() error { return collectives.Scatter(ctx, r.World, 0, blocks, one) },
		func() error { return collectives.Gather(ctx, r.World, 0, one, blocks) },
		func() error { return collectives.Reduce(ctx, r.World, 0, sum, one, blocks[:1]) },
	}
	for _, call := range rooted {
		for range turnsPastAll {
			r.NoError(call())
		}
	}
	for i := range turnsPastAll {
		r.NoError(rooted[i%len(rooted)]())
		r.NoError(collectives.AllReduce(ctx, r.World, sum, one, blocks[:1]))
	}
	r.LessOrEqual(connections(r), rootNeighbors(r), "rank %d", r.Me)
	r.NoError(r.World.Barrier(ctx))
}

// connections returns the number of ranks to which a rank has connected.
func connections(r *testjob.Rank) int { return len(team.Of(r.World).PeerStats()) }

// rootNeighbors returns the number of a rank's neighbors in the tree of the barrier and rank 0;
// all other ranks for rank 0.
func rootNeighbors(r *testjob.Rank) int {
	if r.Me == 0 {
		return r.N - 1
	}
	return 2 + min(treeArity, max(0, r.N-1-r.Me*treeArity)) // above, rank 0, and below
}

// shortReductions is the body of the test of short reductions.
func shortReductions(ctx context.Context, r *testjob.Rank) {
	for i := range turnsPastAll {
		x := slices.Repeat([]int64{1}, 1+i)
		r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), x, x))
		r.EqualValues(r.N, x[i])
	}
	r.LessOrEqual(connections(r), rootNeighbors(r), "rank %d", r.Me)
	r.NoError(r.World.Barrier(ctx))
}
