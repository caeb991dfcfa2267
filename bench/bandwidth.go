//go:build linux

package main

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// putBandwidth streams puts of one size.
func putBandwidth(ctx context.Context, h *harness, size int) (task, error) {
	return stream(ctx, h, size, (*window.Window[byte]).StartPut)
}

// getBandwidth streams gets of one size.
func getBandwidth(ctx context.Context, h *harness, size int) (task, error) {
	return stream(ctx, h, size, (*window.Window[byte]).StartGet)
}

// putBothWays has rank 0 and the target stream puts to each other. Its unit counts both.
func putBothWays(ctx context.Context, h *harness, size int) (task, error) {
	return streams(ctx, h, size, func(rank int) (to int, sends bool) { return target - rank, rank <= target })
}

// putByPairs has each rank of the first half stream puts to one of the second half. A
// last rank without a partner waits.
func putByPairs(ctx context.Context, h *harness, size int) (task, error) {
	pairs := h.world.Size() / 2
	return streams(ctx, h, size, func(rank int) (to int, sends bool) { return rank + pairs, rank < pairs })
}

// pairsLatency has each rank of the first half play ping-pong with one of the second, by
// puts with a signal.
func pairsLatency(ctx context.Context, h *harness, size int) (task, error) {
	w, err := window.Allocate[byte](ctx, h.world, size, window.WithSlots(1))
	if err != nil {
		return task{}, err
	}
	p := &pinger{w: w, src: make([]byte, size), slots: []int{0}}
	pairs := h.world.Size() / 2
	return task{together: true, free: w.Free, run: func(ctx context.Context, n int) error {
		for range n {
			if err := p.exchange(ctx, h.rank, pairs); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// exchange sends a message to the partner and receives one; the first half sends first.
func (p *pinger) exchange(ctx context.Context, rank, pairs int) error {
	switch {
	case rank < pairs:
		if err := p.send(ctx, rank+pairs); err != nil {
			return err
		}
		return p.receive(ctx)
	case rank < 2*pairs:
		if err := p.receive(ctx); err != nil {
			return err
		}
		return p.send(ctx, rank-pairs)
	}
	return nil
}

// streams has several ranks stream puts at the same time; way returns the target of a rank.
// The unit of such a benchmark multiplies by the number of senders.
func streams(ctx context.Context, h *harness, size int, way func(rank int) (to int, sends bool)) (task, error) {
	s, err := newStreamer(ctx, h, size, (*window.Window[byte]).StartPut)
	if err != nil {
		return task{}, err
	}
	to, sends := way(h.rank)
	return task{batch: h.window, each: h.window, together: true, free: s.w.Free, senders: senders(h, way),
		prepare: func() { rewrite(s.buf); s.sum += read(s.w.Local()) },
		run: func(ctx context.Context, n int) error {
			if !sends {
				return nil
			}
			return s.run(ctx, to, n)
		}}, nil
}

// senders counts the ranks that send on a way.
func senders(h *harness, way func(rank int) (to int, sends bool)) (n int) {
	for rank := range h.world.Size() {
		if _, sends := way(rank); sends {
			n++
		}
	}
	return n
}

// A startFunc starts one transfer of a stream.
type startFunc = func(w *window.Window[byte], ctx context.Context, target, index int, buf []byte) (window.Request, error)

// stream prepares a bandwidth task: rank 0 starts transfers, a window's number of them at a time.
func stream(ctx context.Context, h *harness, size int, start startFunc) (task, error) {
	s, err := newStreamer(ctx, h, size, start)
	if err != nil {
		return task{}, err
	}
	return task{batch: h.window, each: h.window, prepare: h.renew(s.buf, s.w.Local()), free: s.w.Free,
		run: h.origin(func(ctx context.Context, n int) error { return s.run(ctx, target, n) })}, nil
}

// A streamer keeps as many transfers under way as it has requests.
type streamer struct {
	w        *window.Window[byte]
	buf      []byte
	turn     rotation
	size     int
	start    startFunc
	requests []window.Request
	sum      byte
}

// newStreamer allocates the window and the buffers between which a streamer moves size bytes.
func newStreamer(ctx context.Context, h *harness, size int, start startFunc) (*streamer, error) {
	turn, err := h.rotation(size)
	if err != nil {
		return nil, err
	}
	w, err := window.Allocate[byte](ctx, h.world, turn.all)
	return &streamer{w: w, buf: make([]byte, turn.all), turn: turn, size: size, start: start, requests: make([]window.Request, h.window)}, err
}

// run makes n transfers; it waits whenever all requests are under way.
func (s *streamer) run(ctx context.Context, to, n int) error {
	for ; n > 0; n -= len(s.requests) {
		if err := s.startAll(ctx, to, s.requests[:min(n, len(s.requests))]); err != nil {
			return err
		}
	}
	return nil
}

// startAll starts a transfer for each request, then waits for them.
func (s *streamer) startAll(ctx context.Context, to int, requests []window.Request) (err error) {
	for i := range requests {
		at := s.turn.next()
		if requests[i], err = s.start(s.w, ctx, to, at, s.buf[at:at+s.size]); err != nil {
			return err
		}
	}
	for _, r := range requests {
		if err := r.Wait(ctx); err != nil {
			return err
		}
	}
	return s.w.Flush(ctx, to)
}
