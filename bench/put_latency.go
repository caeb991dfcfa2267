package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// putLatency is the time until a put has reached the target.
func putLatency(ctx context.Context, h *harness, size int) (task, error) {
	w, err := window.Allocate[byte](ctx, h.world, size)
	if err != nil {
		return task{}, err
	}
	src := make([]byte, size)
	return task{prepare: h.renew(src, w.Local()), free: w.Free, run: h.origin(func(ctx context.Context, n int) error {
		for range n {
			if err := w.Put(ctx, target, 0, src); err != nil {
				return err
			}
			if err := w.Flush(ctx, target); err != nil {
				return err
			}
		}
		return nil
	})}, nil
}

// putIssue is the time until a put returns to its caller. The batch ends with a
// flush, so that it includes the wait for room in the queue.
func putIssue(ctx context.Context, h *harness, size int) (task, error) {
	w, err := window.Allocate[byte](ctx, h.world, size)
	if err != nil {
		return task{}, err
	}
	src := make([]byte, size)
	return task{prepare: h.renew(src, w.Local()), free: w.Free, run: h.origin(func(ctx context.Context, n int) error {
		for range n {
			if err := w.Put(ctx, target, 0, src); err != nil {
				return err
			}
		}
		return w.Flush(ctx, target)
	})}, nil
}
