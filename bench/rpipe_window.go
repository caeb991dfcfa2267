//go:build linux

package main

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/rpipe"
)

// rpipeWindowLatency is the ping-pong through pipes that use a window's public
// calls only. It shows the cost of portability.
func rpipeWindowLatency(more ...rpipe.Option) setup {
	return func(ctx context.Context, h *harness, size int) (task, error) {
		const ends = 2 // of pipes at a rank
		opts := append([]rpipe.Option{rpipe.WithHeap(pipeHeap(size))}, more...)
		c, err := rpipe.OverWindow(ctx, h.world, ends, opts...)
		if err != nil {
			return task{}, err
		}
		t, err := rpipePingPong(ctx, h, size, append(opts, rpipe.WithWindow(c))...)
		pipes := t.free
		t.free = func(ctx context.Context) error { return errors.Join(pipes(ctx), c.Close(ctx)) }
		return t, err
	}
}
