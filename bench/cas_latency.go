//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// casLatency is the time of a compare-and-swap that succeeds.
func casLatency(ctx context.Context, h *harness, _ int) (task, error) {
	w, err := window.Allocate[uint64](ctx, h.world, 1)
	if err != nil {
		return task{}, err
	}
	held := uint64(0)
	return task{free: w.Free, run: h.origin(func(ctx context.Context, n int) error {
		for range n {
			if _, err := window.CompareSwap(ctx, w, target, 0, held, held+1); err != nil {
				return err
			}
			held++
		}
		return nil
	})}, nil
}
