//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// putLatency is the time until a put has reached the target, by the synchronization of -s.
func putLatency(ctx context.Context, h *harness, size int) (task, error) {
	t, err := h.transfers(ctx, size)
	if err != nil {
		return task{}, err
	}
	return t.task((*window.Window[byte]).Put, h.sync), nil
}

// putIssue is the time until a put returns to its caller. The batch ends with a
// flush, so that it includes the wait for room in the queue.
func putIssue(ctx context.Context, h *harness, size int) (task, error) {
	t, err := h.transfers(ctx, size)
	if err != nil {
		return task{}, err
	}
	return t.task((*window.Window[byte]).Put, "flush_local"), nil
}
