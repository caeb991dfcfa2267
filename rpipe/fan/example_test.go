package fan_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/runtime"
)

// Three ranks send their squares to one, which reads whatever comes first.
func ExampleIn() {
	fmt.Println(runtime.RunLocal(context.Background(), 4, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		if me := world.Rank(); me > 0 {
			w, err := rpipe.OpenWriter[int](ctx, world, 0)
			if err != nil {
				return err
			}
			return errors.Join(w.Send(ctx, []int{me * me}), w.Close(ctx))
		}
		f, err := fan.OpenIn[int](ctx, world, []int{1, 2, 3})
		if err != nil {
			return err
		}
		sum := 0
		for b, err := range f.All(ctx) {
			if err != nil {
				return err
			}
			sum += b.Mem()[0]
			if err := f.Free(b.Block); err != nil {
				return err
			}
		}
		fmt.Println("sum of squares", sum)
		return f.Close(ctx)
	}))
	// Output:
	// sum of squares 14
	// <nil>
}

// A block is filled once and read by two ranks.
func ExampleOut() {
	fmt.Println(runtime.RunLocal(context.Background(), 3, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		if world.Rank() == 0 {
			f, err := fan.OpenOut[byte](ctx, world, []int{1, 2})
			if err != nil {
				return err
			}
			b, err := f.Alloc(ctx, 5)
			if err != nil {
				return err
			}
			copy(b.Mem(), "hello")
			return errors.Join(f.Write(ctx, b), f.Close(ctx))
		}
		r, err := rpipe.OpenReader[byte](ctx, world, 0)
		if err != nil {
			return err
		}
		for b, err := range r.All(ctx) {
			if err != nil {
				return err
			}
			fmt.Printf("%s\n", b.Mem())
			if err := r.Free(b); err != nil {
				return err
			}
		}
		return r.Close(ctx)
	}))
	// Unordered output:
	// hello
	// hello
	// <nil>
}

// Each rank sends its number to all ranks, itself included, and adds up the numbers that
// it reads.
func ExampleMesh() {
	fmt.Println(runtime.RunLocal(context.Background(), 3, func(ctx context.Context, job *runtime.Job) error {
		world := job.World()
		m, err := fan.OpenMesh[int](ctx, world, fan.Names{From: "numbers", To: "numbers"})
		if err != nil {
			return err
		}
		for _, w := range m.Out {
			if err := errors.Join(w.Send(ctx, []int{world.Rank()}), w.CloseWrite(ctx)); err != nil {
				return err
			}
		}
		sum := 0
		for b, err := range m.In.All(ctx) {
			if err != nil {
				return err
			}
			sum += b.Mem()[0]
			if err := m.In.Free(b.Block); err != nil {
				return err
			}
		}
		fmt.Println("sum", sum)
		for _, w := range m.Out {
			err = errors.Join(err, w.Close(ctx))
		}
		return errors.Join(err, m.In.Close(ctx))
	}))
	// Output:
	// sum 3
	// sum 3
	// sum 3
	// <nil>
}
