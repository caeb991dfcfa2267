//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// lockLatency is an update under a lock that is free.
func lockLatency(ctx context.Context, h *harness, _ int) (task, error) {
	w, err := window.Allocate[uint64](ctx, h.world, 1)
	if err != nil {
		return task{}, err
	}
	return task{free: w.Free, run: h.origin(func(ctx context.Context, n int) error {
		for i := range n {
			held, err := w.Lock(ctx, target, window.Exclusive)
			if err != nil {
				return err
			}
			if err := w.PutValue(ctx, target, 0, uint64(i)); err != nil {
				return err
			}
			if err := held.Unlock(ctx); err != nil {
				return err
			}
		}
		return nil
	})}, nil
}
