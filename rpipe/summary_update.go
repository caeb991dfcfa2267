package rpipe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A herald adds to a word of a tally at the other end's rank. What finds no room in
// the queue to that rank while a call may wait is owed, and goes with what comes
// next, or by itself a moment later: the block that it tells of is the reader's by
// then, and nobody else would ever tell of it.
type herald struct {
	add  func(ctx context.Context, n uint64) error // to the word; nil: there is none
	owed atomic.Uint64

	mu     sync.Mutex // held for moments
	over   bool
	timer  *time.Timer // made when something is owed for the first time
	noWait context.Context
}

// oweFor is how long what is owed waits between two tries.
const oweFor = time.Millisecond

// tell adds 1, and what is owed. When ctx ends meanwhile that leaves later, which
// is no error.
func (h *herald) tell(ctx context.Context) error {
	if h.add == nil {
		return nil
	}
	err := h.pay(ctx, 1)
	if h.owed.Load() > 0 {
		h.later()
	}
	return err
}

// pay adds n and what is owed. A post that was queued in part, which only devices
// with silent writes know, is paid twice: then the reader looks at the group's
// pipes, rather than at its word.
func (h *herald) pay(ctx context.Context, n uint64) error {
	if n += h.owed.Swap(0); n == 0 {
		return nil
	}
	err := h.add(ctx, n)
	if err != nil && errors.Is(err, context.Cause(ctx)) {
		h.owed.Add(n)
		return nil
	}
	return err // of the rank: nobody is there to be told
}

// later has what is owed tried again.
func (h *herald) later() {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.over:
	case h.timer == nil:
		h.noWait = noWait()
		h.timer = time.AfterFunc(oweFor, h.tick)
	default:
		h.timer.Reset(oweFor)
	}
}

func (h *herald) tick() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	_ = h.pay(h.noWait, 0) // what becomes of the rank the next call meets
	if h.owed.Load() > 0 {
		h.timer.Reset(oweFor)
	}
}

// hush has nothing be added any more by itself: the word may be gone.
func (h *herald) hush() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.timer != nil {
		h.timer.Stop()
	}
}
