//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/rpipe"
)

// rpipeBandwidth streams blocks of one size into a pipe, and sends a byte back at
// the end of each batch. If memory is mapped, the writer fills each block at the
// reader, and that is the transfer. Otherwise one line of it changes at a time,
// and the device moves the block.
func rpipeBandwidth(ctx context.Context, h *harness, size int) (task, error) {
	return rpipeStream(ctx, h, size)
}

// rpipeReadBandwidth is the same, fetched by the reader.
func rpipeReadBandwidth(ctx context.Context, h *harness, size int) (task, error) {
	return rpipeStream(ctx, h, size, rpipe.WithPull())
}

// rpipeStream prepares a task in which rank 0 writes blocks of size bytes and the target reads them.
func rpipeStream(ctx context.Context, h *harness, size int, opts ...rpipe.Option) (task, error) {
	d, err := h.duplex(ctx, size, 1, opts...)
	if err != nil {
		return task{}, err
	}
	if h.Mapped && h.rank == 0 {
		d.fill = make([]byte, size)
	}
	return task{batch: h.window, each: h.window, run: h.streaming(d.send, d.receive), free: d.close}, nil
}

// streaming has rank 0 send and the target receive, and answer once at the end.
func (h *harness) streaming(send func(ctx context.Context, to int) error, receive func(ctx context.Context) error) func(ctx context.Context, n int) error {
	switch h.rank {
	case 0:
		return func(ctx context.Context, n int) error {
			for range n {
				if err := send(ctx, target); err != nil {
					return err
				}
			}
			return receive(ctx)
		}
	case target:
		return func(ctx context.Context, n int) error {
			for range n {
				if err := receive(ctx); err != nil {
					return err
				}
			}
			return send(ctx, 0)
		}
	}
	return func(context.Context, int) error { return nil }
}
