package main

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/rpipe"
)

// overFabric and overWindow are rpipe_latency over the fabric, and over a window's
// public calls. The paper compares its own network with the windows of MPI so
// (slides 39 and 40), for blocks that are written and for blocks that are fetched.
func overFabric(opts ...rpipe.Option) setup {
	return func(ctx context.Context, h *harness, size int) (task, error) {
		return rpipePingPong(ctx, h, size, opts...)
	}
}

func overWindow(opts ...rpipe.Option) setup {
	return func(ctx context.Context, h *harness, size int) (task, error) {
		// One pipe each way, and so two ends at each rank.
		c, err := rpipe.OverWindow(ctx, h.world, 2, rpipe.WithHeap(pipeHeap(size)))
		if err != nil {
			return task{}, err
		}
		t, err := rpipePingPong(ctx, h, size, append(opts[:len(opts):len(opts)], rpipe.WithCarrier(c))...)
		if err != nil {
			return task{}, err
		}
		pipes := t.free
		t.free = func(ctx context.Context) error { return errors.Join(pipes(ctx), c.Close(ctx)) }
		return t, nil
	}
}
