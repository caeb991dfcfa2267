package collectives_test

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
)

// Three ranks add up what each of them has.
func ExampleAllReduce() {
	err := runtime.RunLocal(context.Background(), 3, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		mine, total := []float64{float64(world.Rank()), 0.5}, make([]float64, 2)
		if err := collectives.AllReduce(ctx, world, collectives.Sum[float64](), mine, total); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(total)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// [3 1.5]
	// <nil>
}

// The sum goes on while the program computes.
func ExampleStart() {
	err := runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		sum := []int{world.Rank() + 1}
		req, err := collectives.Start(ctx, world, collectives.AllReduceCall(collectives.Sum[int](), sum, sum))
		if err != nil {
			return err
		}
		squares := 0
		for i := range 10 {
			squares += i * i
		}
		if err := req.Wait(ctx); err != nil {
			return err
		}
		if world.Rank() == 1 {
			fmt.Println(squares, sum)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// 285 [3]
	// <nil>
}

// Affine maps are composed in the order of ranks: they do not commute.
func ExampleNewOp() {
	type affine struct{ A, B int }
	then := collectives.NewOp("then", false, func(f, g affine) affine { return affine{f.A * g.A, f.B*g.A + g.B} })
	err := runtime.RunLocal(context.Background(), 3, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		maps := []affine{{A: 2, B: world.Rank()}}
		if err := collectives.Scan(ctx, world, then, maps, maps); err != nil {
			return err
		}
		if world.Rank() == 2 {
			fmt.Println(maps) // x -> 2x, then 2x+1, then 2x+2
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// [{8 4}]
	// <nil>
}

// A ring of ranks, each of which gives its number to both neighbors.
func ExampleNewCart() {
	err := runtime.RunLocal(context.Background(), 4, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		ring, err := collectives.NewCart(ctx, world, []int{4}, []bool{true})
		if err != nil {
			return err
		}
		around := make([]int, 2)
		if err := collectives.NeighborAllGather(ctx, ring.Graph, []int{world.Rank()}, around); err != nil {
			return err
		}
		if world.Rank() == 0 {
			fmt.Println(around)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// [3 1]
	// <nil>
}
