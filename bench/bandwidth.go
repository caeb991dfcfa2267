package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// underWay is the number of transfers that a bandwidth test starts before it
// waits, as OSU's does.
const underWay = 64

// putBandwidth streams puts of one size.
func putBandwidth(ctx context.Context, h *harness, size int) (task, error) {
	return stream(ctx, h, size, (*window.Window[byte]).StartPut)
}

// getBandwidth streams gets of one size.
func getBandwidth(ctx context.Context, h *harness, size int) (task, error) {
	return stream(ctx, h, size, (*window.Window[byte]).StartGet)
}

type startFunc = func(w *window.Window[byte], ctx context.Context, target, index int, buf []byte) (window.Request, error)

func stream(ctx context.Context, h *harness, size int, start startFunc) (task, error) {
	w, err := window.Allocate[byte](ctx, h.world, size)
	if err != nil {
		return task{}, err
	}
	buf := make([]byte, size)
	requests := make([]window.Request, underWay)
	return task{batch: underWay, prepare: h.renew(buf, w.Local()), free: w.Free,
		run: h.origin(func(ctx context.Context, n int) error {
			for ; n > 0; n -= underWay {
				if err := startAll(ctx, w, requests[:min(n, underWay)], buf, start); err != nil {
					return err
				}
			}
			return nil
		})}, nil
}

// startAll starts a transfer for each request, then waits for them.
func startAll(ctx context.Context, w *window.Window[byte], requests []window.Request, buf []byte, start startFunc) (err error) {
	for i := range requests {
		if requests[i], err = start(w, ctx, target, 0, buf); err != nil {
			return err
		}
	}
	for _, r := range requests {
		if err := r.Wait(ctx); err != nil {
			return err
		}
	}
	return w.Flush(ctx, target)
}
