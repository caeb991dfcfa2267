package main

import (
	"context"

	"github.com/gopgas/gopgas/rpipe"
)

// rpipeLatency plays ping-pong: each message is a block that is allocated at the
// other rank, filled there (or where it leaves from), written, read and freed. The
// books are kept while the other rank has the ball: the answer leaves before the
// block is freed that it answers, and the next block is allocated then. What that
// costs where it is in the way, rpipe_alloc shows.
func rpipeLatency(ctx context.Context, h *harness, size int) (task, error) {
	return rpipePingPong(ctx, h, size)
}

// rpipeTwoPutsLatency posts data and flag one after the other. On mapped memory
// a Write is one store either way.
func rpipeTwoPutsLatency(ctx context.Context, h *harness, size int) (task, error) {
	if h.Mapped {
		return task{}, errSkip
	}
	return rpipePingPong(ctx, h, size, rpipe.WithTwoPuts())
}

// rpipeReadLatency leaves the block at its writer: a message is its flag, the
// fetch, and word that it was fetched.
func rpipeReadLatency(ctx context.Context, h *harness, size int) (task, error) {
	return rpipePingPong(ctx, h, size, rpipe.WithPull())
}

func rpipePingPong(ctx context.Context, h *harness, size int, opts ...rpipe.Option) (task, error) {
	d, err := h.duplex(ctx, size, size, opts...)
	if err != nil {
		return task{}, err
	}
	return task{run: h.pingPong(d.sendAhead, d.keep), free: d.close}, d.ahead(ctx)
}
