//go:build linux

package main

import (
	"context"
	"errors"
	"io"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/conveyor"
)

// A record is an item that a conveyor carries.
type record interface {
	[8]byte | [16]byte | [64]byte
}

// conveyorRate is the number of records a second that rank 0 gets to one rank,
// whose program reads each.
func conveyorRate[R record](ctx context.Context, h *harness, _ int) (task, error) {
	c, err := conveyor.Open[R](ctx, h.world)
	if err != nil {
		return task{}, err
	}
	answer, err := h.duplex(ctx, 1, 1)
	if err != nil {
		return task{}, err
	}
	p := &carrying[R]{c: c}
	run := h.origin(func(ctx context.Context, n int) error {
		return errors.Join(p.push(ctx, n), answer.receive(ctx))
	})
	if h.rank == target {
		run = func(ctx context.Context, n int) error {
			return errors.Join(p.pull(ctx, n), answer.send(ctx, 0))
		}
	}
	return task{batch: manyBlocks, run: run, free: func(ctx context.Context) error {
		return errors.Join(answer.close(ctx), p.close(ctx))
	}}, nil
}

// carrying is a rank's part of such a run.
type carrying[R record] struct {
	c    *conveyor.Conveyor[R]
	next R
	sum  byte
}

// push pushes n records and sends the last block, although it is not full.
func (p *carrying[R]) push(ctx context.Context, n int) error {
	for i := range n {
		p.next[0] = byte(i)
		if err := p.c.Push(ctx, target, p.next); err != nil {
			return err
		}
	}
	return p.c.Flush(ctx)
}

// pull pulls n records.
func (p *carrying[R]) pull(ctx context.Context, n int) error {
	for range n {
		r, _, err := p.c.Pull(ctx)
		if err != nil {
			return err
		}
		p.sum += r[0]
	}
	return nil
}

// close ends the conveyor. Kind: collective.
func (p *carrying[R]) close(ctx context.Context) error {
	if err := p.c.Finish(ctx); err != nil {
		return err
	}
	_, _, err := p.c.Pull(ctx)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, p.c.Close(ctx))
}

// pipesRate is conveyorRate with a block of a pipe for each record.
func pipesRate[R record](ctx context.Context, h *harness, _ int) (task, error) {
	answer, err := h.duplex(ctx, 1, 1)
	if err != nil || h.rank > target {
		return task{run: h.origin(nil)}, err
	}
	opts := singly[R]("singly")
	if h.rank == 0 {
		w, err := rpipe.OpenWriter[R](ctx, h.world, target, opts...)
		if err != nil {
			return task{}, err
		}
		send := func(ctx context.Context, _ int) error { return writeRecord(ctx, w, 1) }
		return task{batch: manyBlocks, run: h.streaming(send, answer.receive), free: func(ctx context.Context) error {
			return errors.Join(w.Close(ctx), answer.close(ctx))
		}}, nil
	}
	r, err := rpipe.OpenReader[R](ctx, h.world, 0, opts...)
	if err != nil {
		return task{}, err
	}
	var sum byte
	receive := func(ctx context.Context) error {
		b, err := r.Read(ctx)
		if err != nil {
			return err
		}
		sum += b.Mem()[0][0]
		return r.Free(b)
	}
	return task{batch: manyBlocks, run: h.streaming(answer.send, receive), free: func(ctx context.Context) error {
		return errors.Join(drain(ctx, r), answer.close(ctx))
	}}, nil
}

// singly returns the options of pipes with room for as many records as a conveyor's
// have.
func singly[R record](name string) []rpipe.Option {
	var r R
	records := conveyed / len(r)
	return []rpipe.Option{rpipe.WithName(name), rpipe.WithWidth(records), rpipe.WithHeap(records * stride(len(r))), rpipe.WithBlocks(records)}
}

// conveyed is the number of bytes that a conveyor's pipe has room for.
const conveyed = 16 * conveyor.DefaultBatch

// writeRecord writes a block of one record.
func writeRecord[R record](ctx context.Context, w *rpipe.Writer[R], value byte) error {
	b, err := w.Alloc(ctx, 1)
	if err != nil {
		return err
	}
	b.Mem()[0][0] = value
	return w.Write(ctx, b)
}
