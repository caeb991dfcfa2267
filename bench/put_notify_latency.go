//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// notifyLatency plays ping-pong with data and its signal. For every message the
// sender rewrites its source and the receiver reads every line.
func notifyLatency(ctx context.Context, h *harness, size int) (task, error) {
	w, err := window.Allocate[byte](ctx, h.world, size, window.WithSlots(1))
	if err != nil {
		return task{}, err
	}
	p := &pinger{w: w, src: make([]byte, size), slots: []int{0}}
	return task{free: w.Free, run: h.pingPong(p.send, p.receive)}, nil
}

// A pinger sends payloads to a peer by PutNotify, and waits for the peer's by WaitNotify.
type pinger struct {
	w        *window.Window[byte]
	src      []byte
	slots    []int
	sent     uint64
	received uint64
	sum      byte
}

// send puts the payload to a peer, with the next number as its signal. pingPong calls it.
func (p *pinger) send(ctx context.Context, to int) error {
	rewrite(p.src)
	p.sent++
	return p.w.PutNotify(ctx, to, 0, p.src, window.Signal{Value: p.sent})
}

// receive waits for the peer's next number, and reads the payload.
func (p *pinger) receive(ctx context.Context) error {
	p.received++
	_, _, err := p.w.WaitNotify(ctx, window.Until{Slots: p.slots, Condition: window.AtLeast, Value: p.received})
	p.sum += read(p.w.Local())
	return err
}

// pingPong has rank 0 send first and the target answer.
func (h *harness) pingPong(send func(ctx context.Context, to int) error, receive func(ctx context.Context) error) func(ctx context.Context, n int) error {
	switch h.rank {
	case 0:
		return func(ctx context.Context, n int) error {
			for range n {
				if err := send(ctx, target); err != nil {
					return err
				}
				if err := receive(ctx); err != nil {
					return err
				}
			}
			return nil
		}
	case target:
		return func(ctx context.Context, n int) error {
			for range n {
				if err := receive(ctx); err != nil {
					return err
				}
				if err := send(ctx, 0); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return func(context.Context, int) error { return nil }
}
