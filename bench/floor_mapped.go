//go:build linux

package main

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/window"
)

// The floors on mapped memory; if none is mapped, those of floor_socket.go serve.

// putLatencyFloor copies and then passes a full barrier, as a flush does. Where memory is not
// mapped, it is a round trip of a raw socket.
func putLatencyFloor(ctx context.Context, h *harness, size int) (task, error) {
	if !h.Mapped {
		return roundTrip(ctx, h, size, 8)
	}
	return h.copying(ctx, size, func(ours, theirs []byte) {
		copy(theirs, ours)
		var word uint32
		atomic.AddUint32(&word, 1) // a full barrier
	})
}

// putIssueFloor prepares a copy to the mapped memory of the target.
func putIssueFloor(ctx context.Context, h *harness, size int) (task, error) {
	if !h.Mapped {
		return task{}, errSkip
	}
	return h.copying(ctx, size, func(ours, theirs []byte) { copy(theirs, ours) })
}

// getLatencyFloor prepares a copy from the mapped memory of the target, or a round trip of a raw
// socket.
func getLatencyFloor(ctx context.Context, h *harness, size int) (task, error) {
	if !h.Mapped {
		return roundTrip(ctx, h, 8, size)
	}
	return h.copying(ctx, size, func(ours, theirs []byte) { copy(ours, theirs) })
}

// putBandwidthFloor prepares copies to the mapped memory of the target, or a raw socket's stream to
// it.
func putBandwidthFloor(ctx context.Context, h *harness, size int) (task, error) {
	if !h.Mapped {
		return socketStream(ctx, h, size, true)
	}
	return h.copying(ctx, size, func(ours, theirs []byte) { copy(theirs, ours) })
}

// getBandwidthFloor prepares copies from the mapped memory of the target, or a raw socket's stream
// from it.
func getBandwidthFloor(ctx context.Context, h *harness, size int) (task, error) {
	if !h.Mapped {
		return socketStream(ctx, h, size, false)
	}
	return h.copying(ctx, size, func(ours, theirs []byte) { copy(ours, theirs) })
}

// copying repeats an access to the target's bytes.
func (h *harness) copying(ctx context.Context, size int, access func(ours, theirs []byte)) (task, error) {
	w, err := window.Allocate[byte](ctx, h.world, size)
	if err != nil {
		return task{}, err
	}
	theirs, err := w.Shared(ctx, target)
	if err != nil {
		return task{}, err
	}
	ours := make([]byte, size)
	return task{batch: 1, prepare: h.renew(ours, w.Local()), free: w.Free, run: h.origin(func(_ context.Context, n int) error {
		for range n {
			access(ours, theirs)
		}
		return nil
	})}, nil
}

// fetchAddLatencyFloor prepares atomic additions to a mapped word, or round trips of a raw socket.
func fetchAddLatencyFloor(ctx context.Context, h *harness, _ int) (task, error) {
	return h.updating(ctx, func(word *uint64, n int) {
		for range n {
			atomic.AddUint64(word, 1)
		}
	})
}

// casLatencyFloor exchanges a word whose value it knows, so that each exchange succeeds.
func casLatencyFloor(ctx context.Context, h *harness, _ int) (task, error) {
	return h.updating(ctx, func(word *uint64, n int) {
		held := atomic.LoadUint64(word)
		for range n {
			atomic.CompareAndSwapUint64(word, held, held+1)
			held++
		}
	})
}

// updating repeats an atomic on a word of the target's.
func (h *harness) updating(ctx context.Context, update func(word *uint64, n int)) (task, error) {
	if !h.Mapped {
		return roundTrip(ctx, h, 8, 8)
	}
	w, err := window.Allocate[uint64](ctx, h.world, 1)
	if err != nil {
		return task{}, err
	}
	theirs, err := w.Shared(ctx, target)
	if err != nil {
		return task{}, err
	}
	return task{free: w.Free, run: h.origin(func(_ context.Context, n int) error {
		update(&theirs[0], n)
		return nil
	})}, nil
}

// notifyLatencyFloor is notifyLatency with a copy, a store of the flag into
// another cache line, and a wait that only polls.
func notifyLatencyFloor(ctx context.Context, h *harness, size int) (task, error) {
	if !h.Mapped {
		return roundTrip(ctx, h, size, size)
	}
	data, err := window.Allocate[byte](ctx, h.world, size)
	if err != nil {
		return task{}, err
	}
	flags, err := window.Allocate[uint64](ctx, h.world, 1)
	if err != nil {
		return task{}, err
	}
	free := func(ctx context.Context) error {
		if err := flags.Free(ctx); err != nil {
			return err
		}
		return data.Free(ctx)
	}
	if h.rank > target {
		return task{run: h.pingPong(nil, nil), free: free}, nil
	}
	p := &rawPinger{ours: data.Local(), flag: &flags.Local()[0], src: make([]byte, size)}
	if p.theirs, err = data.Shared(ctx, target-h.rank); err != nil {
		return task{}, err
	}
	theirFlag, err := flags.Shared(ctx, target-h.rank)
	if err != nil {
		return task{}, err
	}
	p.theirFlag = &theirFlag[0]
	return task{run: h.pingPong(p.send, p.receive), free: free}, nil
}

// A rawPinger plays ping-pong by copies and flags in mapped memory.
type rawPinger struct {
	src, ours, theirs []byte
	flag, theirFlag   *uint64
	sent, received    uint64
	sum               byte
}

// send copies the payload to the peer, and sets the flag behind it. pingPong calls it.
func (p *rawPinger) send(context.Context, int) error {
	rewrite(p.src)
	copy(p.theirs, p.src)
	p.sent++
	atomic.StoreUint64(p.theirFlag, p.sent)
	return nil
}

// receive polls for the peer's flag, and reads the payload.
func (p *rawPinger) receive(ctx context.Context) error {
	p.received++
	if _, err := reach(ctx, p.flag, p.received); err != nil {
		return err
	}
	p.sum += read(p.ours)
	return nil
}
