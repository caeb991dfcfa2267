//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// fetchAddLatency is the time until rank 0 has an addition's result.
func fetchAddLatency(ctx context.Context, h *harness, _ int) (task, error) {
	w, err := window.Allocate[uint64](ctx, h.world, 1)
	if err != nil {
		return task{}, err
	}
	return task{free: w.Free, run: h.origin(func(ctx context.Context, n int) error {
		for range n {
			if _, err := window.FetchAdd(ctx, w, target, 0, 1); err != nil {
				return err
			}
		}
		return nil
	})}, nil
}
