//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/rpipe"
)

// rpipeLatency plays ping-pong. The sender allocates each message at the receiver, fills it there
// (or at its own place) and writes it; the receiver reads and frees it. A rank keeps its books
// while its answer travels: it writes the answer, then frees the block that it answers, and
// allocates the next one. Benchmark rpipe_alloc shows the cost of books on the way of a message.
func rpipeLatency(ctx context.Context, h *harness, size int) (task, error) {
	return rpipePingPong(ctx, h, size)
}

// rpipeTwoPutsLatency posts the data and then the flag. On mapped memory a Write
// is one store either way.
func rpipeTwoPutsLatency(ctx context.Context, h *harness, size int) (task, error) {
	if h.Mapped {
		return task{}, errSkip
	}
	return rpipePingPong(ctx, h, size, rpipe.WithTwoPuts())
}

// rpipeReadLatency leaves the block at its writer: a message is its flag, the
// fetch, and the news of the fetch.
func rpipeReadLatency(ctx context.Context, h *harness, size int) (task, error) {
	return rpipePingPong(ctx, h, size, rpipe.WithPull())
}

// rpipePingPong prepares a ping-pong of blocks of size bytes through two pipes.
func rpipePingPong(ctx context.Context, h *harness, size int, opts ...rpipe.Option) (task, error) {
	d, err := h.duplex(ctx, size, size, opts...)
	if err != nil {
		return task{}, err
	}
	return task{run: h.pingPong(d.sendAhead, d.keep), free: d.close}, d.ahead(ctx)
}
