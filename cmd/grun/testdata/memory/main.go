// Memory allocates more than the ranks of its job can have together. It makes
// windows of as many MiB as its second argument says, or such buffers at each rank
// by itself until memory runs out. Its first argument selects one.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

func main() { runtime.Main(memory) }

// memory allocates pieces of a size until the heap is exhausted, in windows or by
// collectives.Alloc.
func memory(ctx context.Context, job *runtime.Job) error {
	world := job.World()
	mib, err := strconv.Atoi(os.Args[2])
	if err != nil {
		return err
	}
	if err := world.Barrier(ctx); err != nil {
		return err
	}
	for err == nil {
		if os.Args[1] == "windows" {
			_, err = window.Allocate[byte](ctx, world, mib<<20)
		} else {
			_, err = collectives.Alloc[byte](world, mib<<20)
		}
	}
	fmt.Printf("exhausted=%v: %v\n", errors.Is(err, runtime.ErrExhausted), err)
	return nil
}
