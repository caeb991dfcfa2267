// Hello puts a number into the right neighbor's memory.
package main

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

func main() { runtime.Main(hello) }

func hello(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	w, err := window.Allocate[int](ctx, world, 1)
	if err != nil {
		return err
	}
	right := (world.Rank() + 1) % world.Size()
	if err := w.PutValue(ctx, right, 0, world.Rank()); err != nil {
		return err
	}
	err = w.Fence(ctx)
	fmt.Printf("rank %d of %d: rank %d was here\n", world.Rank(), world.Size(), w.Local()[0])
	return err
}
