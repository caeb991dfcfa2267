// Barriers waits for all ranks, again and again, until something happens: a file
// with the name of its argument, for instance.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

func main() { runtime.Main(barriers) }

// barriers runs rounds of puts and barriers until a word of its window says how many there
// are. Tests of signals read the process numbers that it prints.
func barriers(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	w, err := window.Allocate[int](ctx, world, 1001)
	if err != nil {
		return err
	}
	for round := 0; w.Local()[1000] == 0 || round < w.Local()[1000]; round++ {
		if err := w.PutValue(ctx, (world.Rank()+1)%world.Size(), round%1000, round); err != nil {
			return err
		}
		if err := end(ctx, w, world, round); err != nil {
			return err
		}
		if err := w.Fence(ctx); err != nil {
			return err
		}
		if round == 10 {
			fmt.Printf("ready %d <%d>\n", world.Rank(), os.Getpid())
		}
	}
	return nil
}

// end has rank 0 announce that this round is the last one if the file is there.
func end(ctx context.Context, w *window.Window[int], world *runtime.Team, round int) error {
	if world.Rank() != 0 || len(os.Args) < 2 {
		return nil
	}
	if _, err := os.Stat(os.Args[1]); err != nil {
		return nil
	}
	for rank := range world.Size() {
		if err := w.PutValue(ctx, rank, 1000, round+1); err != nil {
			return err
		}
	}
	return nil
}
