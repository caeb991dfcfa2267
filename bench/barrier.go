//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// barrierLatency is the time of a barrier among all ranks.
func barrierLatency(_ context.Context, h *harness, _ int) (task, error) {
	return task{together: true, run: func(ctx context.Context, n int) error {
		for range n {
			if err := h.world.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// fenceLatency is a barrier that also completes one put to the right.
func fenceLatency(ctx context.Context, h *harness, _ int) (task, error) {
	w, err := window.Allocate[uint64](ctx, h.world, 1)
	if err != nil {
		return task{}, err
	}
	right := (h.rank + 1) % h.world.Size()
	return task{free: w.Free, run: func(ctx context.Context, n int) error {
		for i := range n {
			if err := w.PutValue(ctx, right, 0, uint64(i)); err != nil {
				return err
			}
			if err := w.Fence(ctx); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}
