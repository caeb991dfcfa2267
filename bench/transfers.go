//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// A rotation gives buffers of one size in turn, so that each operation touches another one.
type rotation struct{ each, all, at int }

// rotation returns that of -buffers. Buffers share no cache line.
func (h *harness) rotation(size int) (rotation, error) {
	if h.buffers == 1 {
		return rotation{each: size, all: size}, nil
	}
	each := (size + lineSize - 1) / lineSize * lineSize
	if each*h.buffers > maxSize {
		return rotation{}, errSkip
	}
	return rotation{each: each, all: each * h.buffers}, nil
}

// next returns the offset of the next buffer.
func (r *rotation) next() int {
	at := r.at
	if r.at += r.each; r.at == r.all {
		r.at = 0
	}
	return at
}

// Transfers move bytes between rank 0 and the target.
type transfers struct {
	h    *harness
	w    *window.Window[byte]
	mem  []byte
	turn rotation
	size int
}

// transfers allocates the window and the memory for transfers of size bytes. All ranks call it.
func (h *harness) transfers(ctx context.Context, size int) (*transfers, error) {
	turn, err := h.rotation(size)
	if err != nil {
		return nil, err
	}
	w, err := window.Allocate[byte](ctx, h.world, turn.all)
	return &transfers{h: h, w: w, mem: make([]byte, turn.all), turn: turn, size: size}, err
}

// A move is a put or a get.
type move = func(w *window.Window[byte], ctx context.Context, target, index int, mem []byte) error

// task returns the task that makes moves with one way of synchronization.
func (t *transfers) task(one move, sync string) task {
	made := task{prepare: t.h.renew(t.mem, t.w.Local()), free: t.w.Free}
	switch sync {
	case "flush_local":
		made.run = t.h.origin(func(ctx context.Context, n int) error {
			if err := t.repeat(ctx, one, n); err != nil {
				return err
			}
			return t.w.Flush(ctx, target)
		})
	case "none":
		made.run = t.h.origin(func(ctx context.Context, n int) error { return t.repeat(ctx, one, n) })
	case "lock":
		made.run = t.h.origin(func(ctx context.Context, n int) error { return t.locked(ctx, one, n) })
	case "fence":
		made.run = func(ctx context.Context, n int) error { return t.fenced(ctx, one, n) }
	default:
		made.run = t.h.origin(func(ctx context.Context, n int) error { return t.flushed(ctx, one, n) })
	}
	return made
}

// repeat makes n moves without synchronization.
func (t *transfers) repeat(ctx context.Context, one move, n int) error {
	for range n {
		at := t.turn.next()
		if err := one(t.w, ctx, target, at, t.mem[at:at+t.size]); err != nil {
			return err
		}
	}
	return nil
}

// flushed makes n moves with a flush behind each.
func (t *transfers) flushed(ctx context.Context, one move, n int) error {
	for range n {
		at := t.turn.next()
		if err := one(t.w, ctx, target, at, t.mem[at:at+t.size]); err != nil {
			return err
		}
		if err := t.w.Flush(ctx, target); err != nil {
			return err
		}
	}
	return nil
}

// locked makes each transfer under a shared lock of its own.
func (t *transfers) locked(ctx context.Context, one move, n int) error {
	for range n {
		held, err := t.w.Lock(ctx, target, window.Shared)
		if err != nil {
			return err
		}
		if err := t.repeat(ctx, one, 1); err != nil {
			return err
		}
		if err := held.Unlock(ctx); err != nil {
			return err
		}
	}
	return nil
}

// fenced has all ranks make a fence behind each transfer.
func (t *transfers) fenced(ctx context.Context, one move, n int) error {
	for range n {
		if t.h.rank == 0 {
			if err := t.repeat(ctx, one, 1); err != nil {
				return err
			}
		}
		if err := t.w.Fence(ctx); err != nil {
			return err
		}
	}
	return nil
}
