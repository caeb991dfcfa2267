package window

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
)

// A held is a place for a lock that this rank holds. Its word changes with each lock and unlock:
//
//	63       32 31     2 1    0
//	unlocks     target   mode 1 while this rank holds it
type held struct{ word atomic.Uint64 }

const (
	heldBit     = 1
	heldMode    = 1
	heldTarget  = 2
	heldUnlocks = 32
)

func heldWord(before uint64, target int, m Mode) uint64 {
	return before | uint64(target)<<heldTarget | uint64(m)<<heldMode | heldBit
}

func targetOf(word uint64) int { return int(uint32(word) >> heldTarget) }

func heldModeOf(word uint64) Mode { return Mode(word >> heldMode & 1) }

// unlocked is the word behind the unlock of a lock.
func unlocked(word uint64) uint64 { return (word>>heldUnlocks + 1) << heldUnlocks }

// locks holds the locks of a window that this rank has.
type locks struct {
	some  [4]held // enough for most programs
	ended atomic.Bool
	// behind counts goroutines that finish what a call began, see later. inside counts those that make a call for its
	// caller, see within: such a call may wait for a lock until the window ends.
	behind, inside atomic.Int64

	mu   sync.Mutex
	more []*held // it only grows
}

// add enters a lock that was acquired. It returns a handle without a lock when the window or the
// job has ended.
func (l *locks) add(c *core, target int, m Mode) Held {
	for i := range l.some {
		if x := l.some[i].enter(c, target, m); x.h != nil {
			return l.unlessEnded(x)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range l.more {
		if x := h.enter(c, target, m); x.h != nil {
			return l.unlessEnded(x)
		}
	}
	h := new(held)
	l.more = append(l.more, h)
	return l.unlessEnded(h.enter(c, target, m))
}

// enter takes a place unless it is taken.
func (h *held) enter(c *core, target int, m Mode) Held {
	free := h.word.Load()
	if word := heldWord(free, target, m); free&heldBit == 0 && h.word.CompareAndSwap(free, word) {
		return Held{c, h, word}
	}
	return Held{}
}

// unlessEnded takes a lock out again that end has not seen.
func (l *locks) unlessEnded(x Held) Held {
	if l.ended.Load() && x.h.word.CompareAndSwap(x.word, unlocked(x.word)) {
		return Held{}
	}
	return x
}

// remove takes out a lock that this rank releases. It fails if this rank has released it before,
// or if end has taken it out.
func (l *locks) remove(x Held) error {
	switch {
	case x.h.word.CompareAndSwap(x.word, unlocked(x.word)):
		return nil
	case l.ended.Load():
		return ErrHeld // abandonLocks has told the other ranks
	}
	return ErrNotHeld
}

// end makes add refuse further locks, and returns the words of the locks that are held.
func (l *locks) end() (words []uint64) {
	l.ended.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	all := slices.Clone(l.more)
	for i := range l.some {
		all = append(all, &l.some[i])
	}
	for _, h := range all {
		if word := h.word.Load(); word&heldBit != 0 && h.word.CompareAndSwap(word, unlocked(word)) {
			words = append(words, word)
		}
	}
	return words
}

// later runs f on a goroutine for which the end of the window and of the job wait.
func (l *locks) later(c *core, f func()) {
	l.behind.Add(1)
	go func() {
		f()
		l.behind.Add(-1)
		c.team.Bell().Ring()
	}()
}

// settle waits for the goroutines of later.
func (l *locks) settle(ctx context.Context, c *core) error {
	if l.behind.Load() == 0 {
		return nil
	}
	return c.team.Await(ctx, func() bool { return l.behind.Load() == 0 })
}

// abandonLocks abandons the locks that this rank holds, as the window or the job ends here.
// Every rank that waits for one gets an error that names this rank. It returns [ErrHeld] if
// there are any.
func (c *core) abandonLocks(ctx context.Context) error {
	var errs []error
	for _, word := range c.locks.end() {
		target := targetOf(word)
		err := fmt.Errorf("%w: this rank holds it (%v); unlock before Free and before the body returns", ErrHeld, heldModeOf(word))
		errs = append(errs, c.failAt("Lock", target, -1, 0, errors.Join(err, c.abandon(ctx, target))))
	}
	_ = c.locks.settle(ctx, c) // its failure is that of the team
	return errors.Join(errs...)
}

// abandon marks a lock that this rank holds and will not release, and wakes all waiters.
func (c *core) abandon(ctx context.Context, target int) error {
	l := latch{c, c.remotes[target].Load(), target} // Lock reached the target
	err := c.within(ctx, l.r, l.abandon, func() {})
	if err != nil && c.team.Gone(c.team.Members[target:target+1]) != nil {
		return nil //nolint:nilerr // ranks that wait for a dead rank's lock have heard
	}
	return err
}
