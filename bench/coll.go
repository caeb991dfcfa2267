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

type collectiveCall = func(ctx context.Context, t *runtime.Team, in, out []float64) error

func one(int) int    { return 1 }
func two(int) int    { return 2 }
func each(n int) int { return n }

func collectiveCalls() []collective {
	sum := collectives.Sum[float64]()
	ofElements := collectives.NewOp("bench.add", true, func(left, right float64) float64 { return left + right })
	ofSlices := collectives.NewSliceOp("bench.addSlices", true, addSlices)
	return []collective{
		{"broadcast", "osu_bcast", "Broadcast from rank 0", one, one, false, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			if t.Rank() == 0 {
				out = in
			}
			return collectives.Broadcast(ctx, t, 0, out)
		}, nil},
		{"reduce", "osu_reduce", "Reduce to rank 0", one, one, false, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			return collectives.Reduce(ctx, t, 0, sum, in, out)
		}, nil},
		{"allreduce", "osu_allreduce", "AllReduce", one, one, false, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			return collectives.AllReduce(ctx, t, sum, in, out)
		}, nil},
		{"gather", "osu_gather", "Gather of blocks at rank 0", one, each, false, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			return collectives.Gather(ctx, t, 0, in, out)
		}, nil},
		{"allgather", "osu_allgather", "AllGather of blocks", one, each, false, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			return collectives.AllGather(ctx, t, in, out)
		}, nil},
		{"scatter", "osu_scatter", "Scatter of rank 0's blocks", each, one, false, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			return collectives.Scatter(ctx, t, 0, in, out)
		}, nil},
		{"reducescatter", "osu_reduce_scatter", "ReduceScatter", each, one, true, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			return collectives.ReduceScatter(ctx, t, sum, in, out)
		}, nil},
		{"alltoall", "osu_alltoall", "AllToAll of blocks", each, each, false, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			return collectives.AllToAll(ctx, t, in, out)
		}, nil},
		{"scan", "", "Scan", one, one, false, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			return collectives.Scan(ctx, t, sum, in, out)
		}, nil},
		{"exscan", "", "ExScan", one, one, false, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			return collectives.ExScan(ctx, t, sum, in, out)
		}, nil},
		{"allreduce_op", "", "AllReduce by an operator of the program", one, one, false, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			return collectives.AllReduce(ctx, t, ofElements, in, out)
		}, nil},
		{"allreduce_sliceop", "", "AllReduce by an operator of the program on slices", one, one, false, func(ctx context.Context, t *runtime.Team, in, out []float64) error {
			return collectives.AllReduce(ctx, t, ofSlices, in, out)
		}, nil},
		{"neighbor_allgather", "osu_neighbor_allgather", "NeighborAllGather of blocks on a ring", one, two, false, nil, gatheringAlongRing},
		{"neighbor_alltoall", "osu_neighbor_alltoall", "NeighborAllToAll of blocks on a ring", two, two, false, nil, alongRing},
	}
}

// addSlices is the operator of coll_allreduce_sliceop.
func addSlices(dst, left, right []float64) {
	for i := range dst {
		dst[i] = left[i] + right[i]
	}
}

// gatheringAlongRing returns a gather of the blocks of both neighbors on a ring of all ranks.
func gatheringAlongRing(ctx context.Context, t *runtime.Team) (collectiveCall, error) {
	ring, err := collectives.NewCart(ctx, t, []int{t.Size()}, []bool{true})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ *runtime.Team, in, out []float64) error {
		return collectives.NeighborAllGather(ctx, ring.Graph, in, out)
	}, nil
}

// alongRing returns an exchange of blocks with both neighbors on a ring of all ranks.
func alongRing(ctx context.Context, t *runtime.Team) (collectiveCall, error) {
	ring, err := collectives.NewCart(ctx, t, []int{t.Size()}, []bool{true})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, _ *runtime.Team, in, out []float64) error {
		return collectives.NeighborAllToAll(ctx, ring.Graph, in, out)
	}, nil
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
