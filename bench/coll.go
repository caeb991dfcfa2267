//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
)

// A collective is a call to measure, with float64 and rank 0 as its root. The
// size of a measurement is that of one vector, or of one member's block, as in
// OSU's programs. The size of a reduce-scatter is that of its input.
type collective struct {
	name, osu, about string
	// in and out return the number of vectors or blocks of count elements in the
	// input and output among n members.
	in, out func(n int) int
	// cut: the size is that of all blocks together.
	cut  bool
	call collectiveCall
	// open returns the call if that needs something made for the team first; nil
	// if not.
	open func(ctx context.Context, t *runtime.Team) (collectiveCall, error)
}

// A collectiveCall is one call with input and output.
type collectiveCall = func(ctx context.Context, t *runtime.Team, in, out []float64) error

func one(int) int    { return 1 }
func two(int) int    { return 2 }
func each(n int) int { return n }

// collectiveCalls returns the calls in the order of the listing.
func collectiveCalls() []collective {
	sum := collectives.Sum[float64]()
	ofElements := collectives.NewOp("bench.add", true, func(left, right float64) float64 { return left + right })
	ofSlices := collectives.NewSliceOp("bench.addSlices", true, addSlices)
	return []collective{
		{"broadcast", "osu_bcast", "Broadcast from rank 0", one, one, false, broadcast, nil},
		{"reduce", "osu_reduce", "Reduce to rank 0", one, one, false, reduce, nil},
		{"allreduce", "osu_allreduce", "AllReduce", one, one, false, by(sum, collectives.AllReduce), nil},
		{"gather", "osu_gather", "Gather of blocks at rank 0", one, each, false, atFirst(collectives.Gather), nil},
		{"allgather", "osu_allgather", "AllGather of blocks", one, each, false, plain(collectives.AllGather), nil},
		{"scatter", "osu_scatter", "Scatter of rank 0's blocks", each, one, false, atFirst(collectives.Scatter), nil},
		{"reducescatter", "osu_reduce_scatter", "ReduceScatter", each, one, true, by(sum, collectives.ReduceScatter), nil},
		{"alltoall", "osu_alltoall", "AllToAll of blocks", each, each, false, plain(collectives.AllToAll), nil},
		{"scan", "", "Scan", one, one, false, by(sum, collectives.Scan), nil},
		{"exscan", "", "ExScan", one, one, false, by(sum, collectives.ExScan), nil},
		{"allreduce_op", "", "AllReduce by an operator of the program", one, one, false, by(ofElements, collectives.AllReduce), nil},
		{"allreduce_sliceop", "", "AllReduce by an operator of the program on slices", one, one, false, by(ofSlices, collectives.AllReduce), nil},
		{"neighbor_allgather", "osu_neighbor_allgather", "NeighborAllGather of blocks on a ring", one, two, false, nil, alongRing(collectives.NeighborAllGather)},
		{"neighbor_alltoall", "osu_neighbor_alltoall", "NeighborAllToAll of blocks on a ring", two, two, false, nil, alongRing(collectives.NeighborAllToAll)},
	}
}

// broadcast sends rank 0's input from where it lies.
func broadcast(ctx context.Context, t *runtime.Team, in, out []float64) error {
	if t.Rank() == 0 {
		out = in
	}
	return collectives.Broadcast(ctx, t, 0, out)
}

// reduce sums the inputs at rank 0.
func reduce(ctx context.Context, t *runtime.Team, in, out []float64) error {
	return collectives.Reduce(ctx, t, 0, collectives.Sum[float64](), in, out)
}

// plain is a call that has neither operator nor root.
func plain(call func(ctx context.Context, t *runtime.Team, in, out []float64, opts ...collectives.Option) error) collectiveCall {
	return func(ctx context.Context, t *runtime.Team, in, out []float64) error { return call(ctx, t, in, out) }
}

// atFirst is a call whose root is rank 0.
func atFirst(call func(ctx context.Context, t *runtime.Team, root int, in, out []float64, opts ...collectives.Option) error) collectiveCall {
	return func(ctx context.Context, t *runtime.Team, in, out []float64) error { return call(ctx, t, 0, in, out) }
}

// by is a call that combines by an operator.
func by(op collectives.Op[float64], call func(ctx context.Context, t *runtime.Team, op collectives.Op[float64], in, out []float64, opts ...collectives.Option) error) collectiveCall {
	return func(ctx context.Context, t *runtime.Team, in, out []float64) error { return call(ctx, t, op, in, out) }
}

// addSlices is the operator of coll_allreduce_sliceop.
func addSlices(dst, left, right []float64) {
	for i := range dst {
		dst[i] = left[i] + right[i]
	}
}

// alongRing returns a function that makes a ring of all ranks and returns a call with both neighbors on it.
func alongRing(call func(ctx context.Context, g *collectives.Graph, in, out []float64, opts ...collectives.Option) error) func(context.Context, *runtime.Team) (collectiveCall, error) {
	return func(ctx context.Context, t *runtime.Team) (collectiveCall, error) {
		ring, err := collectives.NewCart(ctx, t, []int{t.Size()}, []bool{true})
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context, _ *runtime.Team, in, out []float64) error {
			return call(ctx, ring.Graph, in, out)
		}, nil
	}
}

// count returns the number of elements of a vector or block.
func (c *collective) count(size, n int) int {
	if c.cut {
		size /= n
	}
	return max(1, size/elementSize)
}

// collectiveBenchmarks returns all collectives: from buffers of the heap, from the
// caller's slices, and as their floor, the copy that none can avoid.
func collectiveBenchmarks() []benchmark {
	all := []benchmark{{name: "coll_barrier", osu: "osu_barrier", about: "Barrier", unit: micros(), setup: barrierLatency}}
	for _, c := range collectiveCalls() {
		name := "coll_" + c.name
		all = append(all,
			benchmark{name: name + "_arena", group: name, about: c.about + ", in buffers of the heap", sized: true, unit: micros(), setup: c.measure(inArena)},
			benchmark{name: name + "_slices", osu: c.osu, group: name, about: "the same in the caller's slices", sized: true, unit: micros(), setup: c.measure(inSlices)},
			benchmark{name: name + "_floor", group: name, about: "a barrier, and a copy as large as each rank's result", sized: true, unit: micros(), setup: c.floor()})
	}
	return append(all, overlapBenchmarks()...)
}
