package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// getLatency is the time until a get has its data.
func getLatency(ctx context.Context, h *harness, size int) (task, error) {
	w, err := window.Allocate[byte](ctx, h.world, size)
	if err != nil {
		return task{}, err
	}
	dst := make([]byte, size)
	return task{prepare: h.renew(dst, w.Local()), free: w.Free, run: h.origin(func(ctx context.Context, n int) error {
		for range n {
			if err := w.Get(ctx, target, 0, dst); err != nil {
				return err
			}
		}
		return nil
	})}, nil
}
