package window

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A held is a lock that this rank holds, or held: the window uses its memory again.
type held struct {
	core   *core
	target int
	mode   Mode
	uses   atomic.Uint64 // locks that it stood for and that were released
	place  int           // in locks.held
}

// locks holds the locks of a window that this rank has.
type locks struct {
	mu     sync.Mutex
	held   []*held
	spares []*held
	ended  bool // add refuses
}

// add enters a lock that was acquired. It returns nil when the window or the job has ended.
func (l *locks) add(c *core, target int, m Mode) *held {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return nil
	}
	var h *held
	if last := len(l.spares) - 1; last >= 0 {
		h, l.spares = l.spares[last], l.spares[:last]
	} else {
		h = new(held)
	}
	h.core, h.target, h.mode, h.place = c, target, m, len(l.held)
	l.held = append(l.held, h)
	return h
}

// remove takes out a lock that this rank releases, and keeps its memory for the next lock. It
// returns false when end has taken the lock out.
func (l *locks) remove(h *held) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	last := len(l.held) - 1
	moved := l.held[last]
	l.held[h.place], moved.place = moved, h.place
	l.held[last] = nil
	l.held = l.held[:last]
	l.spares = append(l.spares, h)
	return true
}

// end makes add refuse further locks, and returns the locks that are held.
func (l *locks) end() []*held {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.held
	l.held, l.ended = nil, true
	return held
}

// abandonLocks abandons the locks that this rank holds, as the window or the job ends here.
// Every rank that waits for one gets an error that names this rank. It returns [ErrHeld] if
// there are any.
func (c *core) abandonLocks(ctx context.Context) error {
	var errs []error
	for _, h := range c.locks.end() {
		err := fmt.Errorf("%w: this rank holds it (%v); unlock before Free and before the body returns", ErrHeld, h.mode)
		errs = append(errs, c.failAt("Lock", h.target, -1, 0, errors.Join(err, c.abandon(ctx, h))))
	}
	return errors.Join(errs...)
}

// abandon marks a lock that this rank holds and will not release, and wakes all waiters.
func (c *core) abandon(ctx context.Context, h *held) error {
	r := h.core.remotes[h.target].Load() // Lock reached the target
	err := c.within(ctx, r, func() error { return c.markAbandoned(context.WithoutCancel(ctx), r) }, func() {})
	if err != nil && c.team.Gone(c.team.Members[h.target:h.target+1]) != nil {
		return nil //nolint:nilerr // ranks that wait for a dead rank's lock have heard
	}
	return err
}

// markAbandoned sets abandoned and this rank in the lock's state, unless another rank has.
func (c *core) markAbandoned(ctx context.Context, r *fabric.Remote) error {
	seen, err := c.at(ctx, r, c.layout.lock, driver.AtomicLoad, 0, 0)
	for err == nil && seen&abandonedBit == 0 {
		old := seen
		marked := abandonedBit | uint64(c.team.Rank+1)<<writerShift | old&(1<<writerShift-1)
		if seen, err = c.at(ctx, r, c.layout.lock, driver.AtomicCmpSwap, marked, old); seen == old {
			break
		}
	}
	if err != nil {
		return err
	}
	return c.wakeAll(ctx, r)
}

// abandonedBy returns an error that names the rank that abandoned a lock in this state, nil
// if none has.
func (c *core) abandonedBy(state uint64) error {
	if state&abandonedBit == 0 {
		return nil
	}
	e := &fabric.RankError{Rank: -1, Kind: ErrHeld, Cause: "it freed the window or closed the job while it held the lock; unlock before"}
	if rank := int(state&^abandonedBit>>writerShift) - 1; rank >= 0 && rank < len(c.team.Members) {
		e.Rank = c.team.Members[rank]
	}
	return e
}
