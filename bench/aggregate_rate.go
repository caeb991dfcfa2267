//go:build linux

package main

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"

	"github.com/gopgas/gopgas/rpipe/fan"
)

// manyBlocks is so many blocks that the time of the answer behind them does not
// matter.
const manyBlocks = 1024

// fanInRate is the number of small blocks a second through n pipes, written into
// at random, to one handle that reads all pipes.
func fanInRate(n int) setup {
	return func(ctx context.Context, h *harness, _ int) (task, error) {
		answer, err := h.duplex(ctx, 1, 1)
		if err != nil || h.rank > target {
			return task{run: h.origin(nil)}, err
		}
		opts := smallPipes("fan-in")
		p := &peers{order: rand.New(rand.NewPCG(3, 4))}
		if h.rank == 0 {
			if err := p.open(ctx, h, n, opts); err != nil {
				return task{}, err
			}
			send := func(ctx context.Context, _ int) error { return p.write(ctx, 1) }
			return task{batch: manyBlocks, run: h.streaming(send, answer.receive), free: func(ctx context.Context) error {
				return errors.Join(p.close(ctx), answer.close(ctx))
			}}, p.connect(ctx)
		}
		in, err := fan.OpenIn[byte](ctx, h.world, make([]int, n), opts...)
		if err != nil {
			return task{}, err
		}
		receive := func(ctx context.Context) error { return useAny(ctx, in, &p.sum) }
		for range n {
			if err := receive(ctx); err != nil {
				return task{}, err
			}
		}
		return task{batch: manyBlocks, run: h.streaming(answer.send, receive), free: func(ctx context.Context) error {
			return errors.Join(drainAll(ctx, in), answer.close(ctx))
		}}, nil
	}
}

// useAny reads a block and its bytes, and frees it.
func useAny(ctx context.Context, in *fan.In[byte], sum *byte) error {
	b, _, err := in.Read(ctx)
	if err != nil {
		return err
	}
	*sum += read(b.Mem())
	return in.Free(b)
}

// drainAll closes pipes after their writers.
func drainAll[T any](ctx context.Context, in *fan.In[T]) error {
	_, _, err := in.Read(ctx)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, in.Close(ctx))
}
