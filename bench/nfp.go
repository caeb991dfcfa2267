//go:build linux

package main

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/gopgas/gopgas/rpipe"
)

// polling measures one look for a notification that has not come: a load of its
// flag, and progress if the transport needs it.
func polling(ctx context.Context, h *harness, _ int) (task, error) {
	d, err := h.duplex(ctx, 1, 1)
	if err != nil {
		return task{}, err
	}
	// A pipe that was never used looks for its peer instead.
	if err := h.pingPong(d.send, d.receive)(ctx, 1); err != nil {
		return task{}, err
	}
	return task{free: d.close, run: h.origin(func(_ context.Context, n int) error {
		for range n {
			if _, err := d.r.TryRead(); !errors.Is(err, rpipe.ErrWouldBlock) {
				return errors.Join(errUnexpected, err)
			}
		}
		return nil
	})}, nil
}

var errUnexpected = errors.New("a block where none was written")

// pollingFloor is the load alone.
func pollingFloor(_ context.Context, h *harness, _ int) (task, error) {
	flag := new(uint64)
	return task{run: h.origin(func(_ context.Context, n int) error {
		for range n {
			if atomic.LoadUint64(flag) != 0 {
				return errUnexpected
			}
		}
		return nil
	})}, nil
}
