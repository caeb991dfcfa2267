// Barriers waits for all ranks, again and again, until something happens.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

func main() { runtime.Main(barriers) }

func barriers(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	w, err := window.Allocate[int](ctx, world, 1000)
	if err != nil {
		return err
	}
	for round := 0; ; round++ {
		if err := w.PutValue(ctx, (world.Rank()+1)%world.Size(), round%1000, round); err != nil {
			return err
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if round == 10 {
			fmt.Printf("ready %d <%d>\n", world.Rank(), os.Getpid())
		}
	}
}
