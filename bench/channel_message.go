//go:build linux

package main

import "context"

// These benchmarks measure the constants of the LogGP model for a message of a collective
// call. See package loggp. They follow Culler, Liu, Martin and Yoshikawa, "Assessing Fast
// Network Interfaces", 1996. The sender's time is that of messages for which it need not wait
// for room. The receiver's is that of messages that have arrived.

// channelBatch messages are under way at once: no sender waits for room.
const (
	channelBatch = 16
	channelMost  = 16 << 10 // bytes of each
)

// channelSend times rank 0's sends.
func channelSend(ctx context.Context, h *harness, size int) (task, error) {
	if size > channelMost {
		return task{}, errSkip
	}
	p, free, err := h.channel(ctx, "send", size)
	if err != nil || h.rank > target {
		return task{run: h.origin(nil), free: free}, err
	}
	run := p.sendMany
	if h.rank == target {
		run = p.receiveMany
	}
	return task{most: channelBatch, run: run, free: free}, nil
}

// channelReceive times rank 0's receives of messages that came before the batch began. All
// batches have the same length, since the target sends them without knowing it.
func channelReceive(ctx context.Context, h *harness, size int) (task, error) {
	if size > channelMost {
		return task{}, errSkip
	}
	p, free, err := h.channel(ctx, "receive", size)
	if err != nil || h.rank > target {
		return task{run: h.origin(nil), free: free}, err
	}
	if h.rank == 0 {
		run := func(ctx context.Context, _ int) error { return p.receiveMany(ctx, channelBatch) }
		return task{batch: channelBatch, most: channelBatch, run: run, free: free}, nil
	}
	var failed error
	prepare := func() { failed = p.sendMany(ctx, channelBatch) }
	return task{prepare: prepare, run: func(context.Context, int) error { return failed }, free: free}, nil
}

// channelStream times messages that rank 0 sends one after the other, until the target has
// received all.
func channelStream(ctx context.Context, h *harness, size int) (task, error) {
	if size > channelMost {
		return task{}, errSkip
	}
	p, free, err := h.channel(ctx, "stream", size)
	if err != nil || h.rank > target {
		return task{run: h.origin(nil), free: free}, err
	}
	return task{batch: manyBlocks, run: h.streaming(p.send, p.receive), free: free}, nil
}

// sendMany sends n messages, and makes progress so that each leaves.
func (p *channelPinger) sendMany(ctx context.Context, n int) error {
	for i := range n {
		if err := p.send(ctx, i); err != nil {
			return err
		}
		p.progress()
	}
	return nil
}

// receiveMany receives n messages of the peer.
func (p *channelPinger) receiveMany(ctx context.Context, n int) error {
	for range n {
		if err := p.receive(ctx); err != nil {
			return err
		}
	}
	return nil
}
