//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// getLatency is the time until a get has its data. A get needs no flush.
func getLatency(ctx context.Context, h *harness, size int) (task, error) {
	t, err := h.transfers(ctx, size)
	if err != nil {
		return task{}, err
	}
	sync := h.sync
	if sync == "" || sync == "flush" {
		sync = "none"
	}
	return t.task((*window.Window[byte]).Get, sync), nil
}
