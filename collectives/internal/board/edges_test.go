package board

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/testwatch"
)

func TestExchangesSendBlocksAlongTheEdgesOfRandomGraphs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.SampledFrom(teams).Draw(rt, "members")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2))
		with := tiny
		with.large, with.place = 64*rapid.IntRange(1, 12).Draw(rt, "large"), rapid.IntRange(0, 400).Draw(rt, "place")
		with.pipe, with.pipeMost = rapid.IntRange(1, 256).Draw(rt, "pipe"), rapid.IntRange(1, 1024).Draw(rt, "pipeMost")
		var graphs []*digraph
		for range rapid.IntRange(1, 3).Draw(rt, "graphs") {
			graphs = append(graphs, randomDigraph(random, n, random.IntN(3*n+1)))
		}
		var calls []exchange
		for range rapid.IntRange(1, 40).Draw(rt, "calls") {
			x := exchange{graph: graphs[random.IntN(len(graphs))], gather: random.IntN(2) == 0, vary: random.IntN(2) == 0,
				size: random.IntN(50), seed: random.Uint64(), placed: random.IntN(256)}
			if random.IntN(4) == 0 {
				x.size *= 60
			}
			calls = append(calls, x)
		}
		newEdgeRig(t, n, with).along(rt, calls)
	})
}

func TestMembersOfARingExchangeBlocksOfAllLengths(t *testing.T) {
	for _, n := range teams {
		newEdgeRig(t, n, tiny).along(t, aroundLengths(n, tiny))
	}
	with := edgeTuning(2, false)
	if testwatch.Race {
		with.large, with.pipeMost = with.large/8, with.pipeMost/8
	}
	var some []exchange // lengths are hundreds of kilobytes: each in one way or another
	for i, x := range aroundLengths(2, with) {
		if i%7 == 0 {
			some = append(some, x)
		}
	}
	newEdgeRig(t, 2, with).along(t, some)
}

// aroundLengths returns exchanges of blocks about as long as each threshold of a tuning,
// six ways for each length.
func aroundLengths(n int, with tuning) (calls []exchange) {
	g := circle(n)
	for _, at := range []int{1, short, with.place, with.pipe, 4 * with.pipe, with.large, 4 * with.large, 4 * with.pipeMost, 9 * with.large} {
		for size := at - 1; size <= at+1; size++ {
			for _, placed := range []int{0, -1, 0b10110101} {
				calls = append(calls, exchange{graph: g, size: size, seed: uint64(len(calls)), placed: placed},
					exchange{graph: g, size: size, seed: uint64(len(calls)), placed: placed, gather: true, vary: true})
			}
		}
	}
	return calls
}

// TestTenThousandExchangesInARowAgree has every line used again many times, by members that
// nothing keeps together but their edges.
func TestTenThousandExchangesInARowAgree(t *testing.T) {
	many := 10_000
	if testwatch.Race {
		many = 1000
	}
	for _, n := range []int{2, 3, 8} {
		random := rand.New(rand.NewPCG(uint64(n), 3))
		graphs := []*digraph{circle(n), randomDigraph(random, n, n), randomDigraph(random, n, 2*n)}
		calls := make([]exchange, many)
		for i := range calls {
			calls[i] = exchange{graph: graphs[random.IntN(3)], gather: i%3 == 0, vary: i%2 == 0, size: random.IntN(12) << random.IntN(6), seed: uint64(i)}
		}
		newEdgeRig(t, n, tiny).along(t, calls)
	}
}

// oneWay is a graph of one edge, from member 0 to member 1.
func oneWay() *digraph {
	g := newDigraph(2)
	g.join(0, 1, 0)
	return g
}

// TestSenderRunsAheadByTheRoomOfItsQueue: lines for short blocks, large buffers for long
// ones, and not at all if the receiver reads them in place.
func TestSenderRunsAheadByTheRoomOfItsQueue(t *testing.T) {
	for size, want := range map[int]int{0: queueLines, short: queueLines, short + 1: largeBuffers, tiny.pipe: largeBuffers, tiny.pipe + 1: largeBuffers / 2} {
		r := newEdgeRig(t, 2, tiny)
		edges := r.edges(t, oneWay())
		x := exchange{graph: oneWay(), size: size}
		require.Equal(t, want, r.runAhead(t, edges[0], &x), "%d bytes", size)
		for i := range want { // all posted blocks arrive all the same
			require.NoError(t, x.make(testwatch.Context(t), r.rig, edges[1], uint64(i)))
		}
	}
	r := newEdgeRig(t, 2, tiny)
	x := exchange{graph: oneWay(), size: tiny.place, placed: 1}
	require.Zero(t, r.runAhead(t, r.edges(t, oneWay())[0], &x), "no member has read it")
}

// runAhead counts the calls of a member that end while no other member makes one.
func (r *edgeRig) runAhead(t *testing.T, e *Edges, x *exchange) (calls int) {
	ended, cancel := context.WithCancelCause(context.Background())
	cancel(errBroken)
	for ; ; calls++ {
		err := x.make(ended, r.rig, e, uint64(calls))
		if err == nil {
			continue
		}
		require.ErrorIs(t, err, errBroken)
		require.ErrorIs(t, x.make(testwatch.Context(t), r.rig, e, 0), errBroken, "there is no call after an error")
		return calls
	}
}

func TestReceiverReadsMappedBlocksInPlace(t *testing.T) {
	for placed := range 2 {
		r := newEdgeRig(t, 3, tiny)
		r.along(t, []exchange{{graph: circle(3), size: tiny.large, seed: 1, placed: -placed},
			{graph: circle(3), size: tiny.place, seed: 1, placed: -placed, gather: true}})
		staged := false
		for _, mem := range r.mem {
			staged = staged || !bytes.Equal(mem[queueLargeOffset:], make([]byte, largeBuffers*tiny.large))
		}
		require.Equal(t, placed == 0, staged)
	}
}

// TestGraphsShareQueues: a program that makes graphs without end takes no more memory
// for it.
func TestGraphsShareQueues(t *testing.T) {
	r := newEdgeRig(t, 4, tiny)
	r.edges(t, circle(4))
	made := len(r.mem)
	require.Equal(t, 8, made)
	for range 10 {
		r.edges(t, circle(4))
	}
	require.Len(t, r.mem, made)
	from, to := r.queues[0].Missing([]int{0, 1, 2, 2}, []int{2, 0, 3, 2})
	require.Equal(t, [2][]int{{2}, {2}}, [2][]int{from, to})
}

func TestQueuesOfThousandPartnersTakeAtMost32MiB(t *testing.T) {
	for n := 1; n <= 4096; n++ {
		require.LessOrEqual(t, min(n, 1000)*QueueSize(n), 32<<20)
		require.GreaterOrEqual(t, queueLargeSize(n), 4<<10)
		require.Zero(t, queueLargeSize(n)%4096)
	}
}

func TestExchangesAllocateNothing(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	const runs = 200
	for _, n := range []int{1, 2, 3} {
		for _, x := range []exchange{{size: 8}, {size: 900}, {size: 900, placed: -1}, {size: 100, vary: true}, {size: 8, gather: true}} {
			x.graph = circle(n)
			r := newEdgeRig(t, n, tiny)
			edges := r.edges(t, x.graph)
			made := make(chan error, n)
			for _, e := range edges[1:] {
				a, _ := x.args(r.rig, e.rank)
				go func() {
					var err error
					for i := 0; i <= runs && err == nil; i++ {
						err = x.do(context.Background(), e, uint64(i), a)
					}
					made <- err
				}()
			}
			a, _ := x.args(r.rig, 0)
			i := uint64(0)
			allocs := testing.AllocsPerRun(runs, func() {
				if err := x.do(context.Background(), edges[0], i, a); err != nil {
					t.Error(err)
				}
				i++
			})
			for range n - 1 {
				require.NoError(t, <-made)
			}
			require.Zero(t, allocs, fmt.Sprint(n, &x))
		}
	}
}
