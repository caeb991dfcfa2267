//go:build linux

package main

import (
	"context"
	"errors"
	"io"

	"github.com/gopgas/gopgas/rpipe/gochan"
)

// channelRate is conveyorRate through a channel of values.
func channelRate[R record](ctx context.Context, h *harness, _ int) (task, error) {
	answer, err := h.duplex(ctx, 1, 1)
	if err != nil || h.rank > target {
		return task{run: h.origin(nil)}, err
	}
	if h.rank == 0 {
		s, err := gochan.OpenSender[R](ctx, h.world, target)
		if err != nil {
			return task{}, err
		}
		var v R
		send := func(ctx context.Context, _ int) error { v[0]++; return s.Send(ctx, v) }
		return task{batch: manyBlocks, run: h.streaming(send, answer.receive), free: func(ctx context.Context) error {
			return errors.Join(s.Close(ctx), answer.close(ctx))
		}}, nil
	}
	c, err := gochan.OpenReceiver[R](ctx, h.world, 0)
	if err != nil {
		return task{}, err
	}
	var sum byte
	receive := func(ctx context.Context) error {
		v, err := c.Recv(ctx)
		sum += v[0]
		return err
	}
	return task{batch: manyBlocks, run: h.streaming(answer.send, receive), free: func(ctx context.Context) error {
		return errors.Join(endOf(ctx, c), answer.close(ctx))
	}}, nil
}

// endOf receives the end of a channel, and closes it.
func endOf[T any](ctx context.Context, c *gochan.Receiver[T]) error {
	_, err := c.Recv(ctx)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, c.Close(ctx))
}
