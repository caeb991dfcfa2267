//go:build linux

package main

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/element"
)

// Bench times batches of calls between two barriers. A time runs from the first rank's begin to the
// last rank's end, even if the root need not wait. If ranks share cores, a rank may leave the first
// barrier after the rest have done half of the work. So the time of a single rank means nothing.
//
//	untimed    rewrite all inputs, read the outputs; barrier
//	timed      n calls; with -lockstep, a barrier behind each
//	untimed    barrier
//
// Every call has new input. Up to rewriteMax bytes a rank rewrites its input ahead of each call,
// which counts as time. For longer ones it has some inputs, one for each call of the batch, so that
// the batch outweighs the barrier. The peers' bench/peers/c/coll.c does the same.
//
// With -buffers there are so many inputs and outputs, which calls use in turn.
const (
	elementSize = 8
	rewriteMax  = 4 << 10
	severalMax  = 256 << 10
	several     = 4  // inputs above rewriteMax, up to severalMax; above that one
	manyCalls   = 16 // of a batch, at least, up to rewriteMax
	// roomMax bounds the ranks' inputs and outputs together.
	roomMax = 2 << 30
)

// A maker allocates count elements, and returns a function that frees them.
type maker func(h *harness, count int) (mem []float64, free func() error, err error)

func inSlices(_ *harness, count int) ([]float64, func() error, error) {
	return make([]float64, count), func() error { return nil }, nil
}

// inArena is a maker of buffers that lie in the rank's heap.
func inArena(h *harness, count int) ([]float64, func() error, error) {
	b, err := collectives.Alloc[float64](h.world, count)
	if err != nil {
		return nil, nil, err
	}
	return b.Mem(), b.Free, nil
}

// A collTask is a collective at one rank.
type collTask struct {
	h     *harness
	small bool // each call begins with a rewritten input
	in    [][]float64
	outs  [][]float64
	frees []func() error
	sum   byte
}

// measure returns the setup of a benchmark of this call. room makes its buffers.
func (c collective) measure(room maker) setup {
	return func(ctx context.Context, h *harness, size int) (task, error) {
		t, err := c.prepare(h, size, room)
		if err != nil {
			return task{}, err
		}
		call := c.call
		if c.open != nil {
			if call, err = c.open(ctx, h.world); err != nil {
				return task{}, err
			}
		}
		return t.task(func(ctx context.Context, in, out []float64) error { return call(ctx, h.world, in, out) }), nil
	}
}

// floor copies as much as the rank gets, from memory of its own, after a barrier.
func (c collective) floor() setup {
	return func(_ context.Context, h *harness, size int) (task, error) {
		likewise := c
		likewise.in = c.out
		t, err := likewise.prepare(h, size, inSlices)
		if err != nil {
			return task{}, err
		}
		return t.task(func(ctx context.Context, in, out []float64) error {
			copy(out, in)
			return h.world.Barrier(ctx)
		}), nil
	}
}

// prepare makes inputs and outputs of the same length at all ranks.
func (c *collective) prepare(h *harness, size int, room maker) (*collTask, error) {
	n := h.world.Size()
	count := c.count(size, n)
	in, out := c.in(n)*count, c.out(n)*count
	t := &collTask{h: h, small: size <= rewriteMax}
	inputs, outputs := 1, 1
	switch {
	case h.buffers > 1:
		inputs, outputs = h.buffers, h.buffers
	case !t.small && size <= severalMax:
		inputs = several
	}
	if n*(inputs*in+outputs*out) > roomMax/elementSize {
		return nil, errSkip
	}
	for range inputs {
		mem, err := t.take(room, in)
		if err != nil {
			return nil, err
		}
		for i := range mem {
			mem[i] = 1 // renew changes the last bits only: no number gets out of hand
		}
		t.in = append(t.in, mem)
	}
	for range outputs {
		mem, err := t.take(room, out)
		if err != nil {
			return nil, err
		}
		t.outs = append(t.outs, mem)
	}
	return t, nil
}

// take makes a buffer of count elements, and has release free it. After an error the task has no
// buffers.
func (t *collTask) take(room maker, count int) ([]float64, error) {
	mem, free, err := room(t.h, count)
	if err != nil {
		return nil, errors.Join(err, t.release())
	}
	t.frees = append(t.frees, free)
	return mem, nil
}

// release frees all buffers of the task.
func (t *collTask) release() error {
	var errs []error
	for _, free := range t.frees {
		errs = append(errs, free())
	}
	return errors.Join(errs...)
}

// task runs batches of call.
func (t *collTask) task(call func(ctx context.Context, in, out []float64) error) task {
	batch, most := manyCalls, maxBatch
	if !t.small {
		batch, most = len(t.in), len(t.in)
	}
	return task{batch: batch, most: most, together: true, prepare: t.renew, free: t.free, run: func(ctx context.Context, n int) error {
		for i := range n {
			in := t.in[i%len(t.in)]
			if t.small {
				rewrite(element.Bytes(in))
			}
			if err := call(ctx, in, t.outs[i%len(t.outs)]); err != nil {
				return err
			}
			if t.h.lockstep {
				if err := t.h.world.Barrier(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	}}
}

// renew rewrites and reads the buffers between batches.
func (t *collTask) renew() {
	for _, in := range t.in {
		rewrite(element.Bytes(in))
	}
	for _, out := range t.outs {
		t.sum += read(element.Bytes(out))
	}
}

// free frees the memory once no rank reads it. Kind: collective.
func (t *collTask) free(ctx context.Context) error {
	if err := t.h.world.Barrier(ctx); err != nil {
		return err
	}
	return t.release()
}
