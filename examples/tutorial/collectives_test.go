package tutorial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
)

func Example_allReduce() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		temperature := []float64{18.5, 21, 24.5, 20}[world.Rank()]

		sum := []float64{temperature}
		err := collectives.AllReduce(ctx, world, collectives.Sum[float64](), sum, sum)
		if err != nil {
			return err
		}
		hottest := []collectives.Loc[float64]{{Value: temperature, Index: int64(world.Rank())}}
		err = collectives.Reduce(ctx, world, 0, collectives.MaxLoc[float64](), hottest, hottest)
		if err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println("mean", sum[0]/float64(world.Size()), "and rank", hottest[0].Index, "has most:", hottest[0].Value)
		}
		return nil
	})
	// Output: mean 21 and rank 2 has most: 24.5
}

func Example_start() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		mine, all := []int{world.Rank() * 10}, make([]int, world.Size())

		request, err := collectives.Start(ctx, world, collectives.AllGatherCall(mine, all))
		if err != nil {
			return err
		}
		answer := 0 // the call goes on while this is computed
		for i := range 43 {
			answer = max(answer, i)
		}
		if err := request.Wait(ctx); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(all, answer)
		}
		return nil
	})
	// Output: [0 10 20 30] 42
}

func Example_plan() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		buffer, err := collectives.Alloc[float64](world, 1000)
		if err != nil {
			return err
		}
		x := buffer.Mem()
		x[0] = float64(world.Rank())

		average, err := collectives.Plan(ctx, world, collectives.AllReduceCall(collectives.Sum[float64](), x, x))
		if err != nil {
			return err
		}
		for range 3 {
			if err := average.Run(ctx); err != nil {
				return err
			}
			for i := range x {
				x[i] /= float64(world.Size())
			}
		}
		if world.Rank() == 0 {
			fmt.Println(x[0])
		}
		if err := average.Free(ctx); err != nil {
			return err
		}
		if err := world.Barrier(ctx); err != nil { // no rank reads it any more
			return err
		}
		return buffer.Free()
	})
	// Output: 1.5
}

func Example_blocks() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		mine := strings.Repeat(string(rune('a'+world.Rank())), world.Rank()) // "", "b", "cc", "ddd"

		blocks := collectives.Blocks{Counts: []int{0, 1, 2, 3}}
		all := make([]byte, 6)
		if err := collectives.AllGatherV(ctx, world, []byte(mine), all, blocks); err != nil {
			return err
		}
		if world.Rank() == 1 {
			fmt.Printf("%s\n", all)
		}
		return nil
	})
	// Output: bccddd
}

func Example_operator() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		type line struct{ slope, offset int }   // x -> slope x + offset
		then := func(first, second line) line { // first one, then the other
			return line{first.slope * second.slope, second.slope*first.offset + second.offset}
		}
		compose := collectives.NewOp("compose lines", false, then)

		mine := []line{{slope: world.Rank() + 1, offset: 1}}
		if err := collectives.Scan(ctx, world, compose, mine, mine); err != nil {
			return err
		}
		if world.Rank() == 3 {
			fmt.Printf("x -> %d x + %d\n", mine[0].slope, mine[0].offset)
		}
		return nil
	})
	// Output: x -> 24 x + 41
}

func Example_neighbors() {
	run(func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		ring, err := collectives.NewCart(ctx, world, []int{world.Size()}, []bool{true})
		if err != nil {
			return err
		}
		edges := []string{"lower", "higher"}
		out, in := make([]int, 2), make([]int, 2)
		for i := range edges {
			out[i] = 10*world.Rank() + i
		}
		if err := collectives.NeighborAllToAll(ctx, ring.Graph, out, in); err != nil {
			return err
		}
		if world.Rank() == 0 {
			for i, edge := range edges {
				fmt.Println("from the", edge, "one, rank", ring.In()[i], "came", in[i])
			}
		}
		return nil
	})
	// Output:
	// from the lower one, rank 3 came 31
	// from the higher one, rank 1 came 10
}

func Example_mismatch() {
	err := runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		values := make([]int32, 3+world.Rank()) // rank 1 has one too many
		err := collectives.AllReduce(ctx, world, collectives.Sum[int32](), values, values)
		var differ *runtime.MismatchError
		if errors.As(err, &differ) && world.Rank() == 0 {
			fmt.Println("rank", differ.Rank, "called", differ.Call)
			fmt.Println("rank", differ.Other, "called", differ.OtherDid)
		}
		return nil
	})
	fmt.Println(err)
	// Unordered output:
	// rank 0 called AllReduce of 3 int32, Sum
	// rank 1 called AllReduce of 4 int32, Sum
	// <nil>
}

// TestPageOnCollectivesListsAllAlgorithms compares the page with Call.Algorithms.
func TestPageOnCollectivesListsAllAlgorithms(t *testing.T) {
	page, err := os.ReadFile("../../docs/collectives-algorithms.md")
	require.NoError(t, err)
	x, sum := []int{1}, collectives.Sum[int]()
	for name, call := range map[string]collectives.Call{
		"Broadcast": collectives.BroadcastCall(0, x), "Reduce": collectives.ReduceCall(0, sum, x, x),
		"AllReduce": collectives.AllReduceCall(sum, x, x), "Gather": collectives.GatherCall(0, x, x),
		"Scatter": collectives.ScatterCall(0, x, x), "AllGather": collectives.AllGatherCall(x, x),
		"ReduceScatter": collectives.ReduceScatterCall(sum, x, x), "AllToAll": collectives.AllToAllCall(x, x),
		"Scan": collectives.ScanCall(sum, x, x), "ExScan": collectives.ExScanCall(sum, x, x),
	} {
		for _, algorithm := range call.Algorithms(nil) {
			var row string
			for line := range strings.Lines(string(page)) {
				if cells := strings.Split(line, "|"); len(cells) > 3 && strings.Contains(cells[1], "`"+algorithm+"`") &&
					(strings.HasPrefix(algorithm, "board") || strings.Contains(" "+strings.ReplaceAll(cells[2], ",", " ")+" ", " "+name+" ")) {
					row = line
				}
			}
			require.NotEmptyf(t, row, "no row of a table names algorithm `%s` for %s", algorithm, name)
		}
	}
}
