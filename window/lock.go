package window

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Mode selects whether other ranks may hold a lock at the same time.
type Mode uint8

const (
	// Shared: any number of shared holders.
	Shared Mode = iota
	// Exclusive: one holder.
	Exclusive
)

// String returns "shared" or "exclusive".
func (m Mode) String() string {
	if m == Exclusive {
		return "exclusive"
	}
	return "shared"
}

// Held is a lock that this rank holds.
type Held struct {
	core *core
	h    *held
	word uint64
}

// Lock waits for the target's lock. Locks are advisory: accesses do not check them. Ranks that wait
// for an exclusive lock get it in the order in which they came. Behind it all ranks get the lock
// that wait for a shared one. No further rank shares it while one waits for an exclusive one. So a
// goroutine that has a shared lock must not wait for a second one. Goroutines of one rank wait one
// behind the other.
//
// If ctx ends first, this rank holds nothing. If a rank of the team is gone and the call would have
// to wait, it fails, since that rank may be the holder. The holder must release the lock before
// it frees the window or closes the job; otherwise the call fails with [ErrHeld]. Kind: one-sided.
func (w *Window[T]) Lock(ctx context.Context, target int, m Mode) (Held, error) {
	return w.lockBy(ctx, "Lock", target, m, true)
}

// TryLock is Lock that waits for no other holder: shmem_test_lock. Another rank or goroutine may have
// the lock in the way of m, or wait for it ahead of this rank. Then ok is false and held empty. If
// that is so and a rank of the team is gone, the call fails as Lock does. A program that calls it in a
// loop takes a core from the holder: call Lock instead. Kind: one-sided.
func (w *Window[T]) TryLock(ctx context.Context, target int, m Mode) (h Held, ok bool, err error) {
	h, err = w.lockBy(ctx, "TryLock", target, m, false)
	if errors.Is(err, errTaken) {
		return Held{}, false, nil
	}
	return h, err == nil, err
}

// errTaken ends an attempt to get a lock that is taken.
var errTaken = errors.New("lock is taken")

// lockBy takes the lock. It waits for it, or returns errTaken.
func (c *core) lockBy(ctx context.Context, op string, target int, m Mode, waits bool) (Held, error) {
	r, err := c.remote(ctx, target)
	l := latch{c, r, target}
	switch {
	case err != nil || c.lease != nil || c.via != nil || m > Exclusive:
		err = c.lockless(err, m)
	case r.Mem != nil:
		err = l.take(ctx, m, waits)
	default:
		err = l.takeFar(ctx, m, waits)
	}
	if err != nil {
		if whole := c.team.Err(); whole != nil {
			err = whole // this failure follows from it
		}
		return Held{}, c.failAt(op, target, -1, 0, err)
	}
	h := c.locks.add(c, target, m)
	if h.h == nil {
		return Held{}, c.failAt(op, target, -1, 0, errors.Join(ErrFreed, l.release(m)))
	}
	return h, nil
}

// lockless returns the error of a call that can take no lock.
func (c *core) lockless(err error, m Mode) error {
	switch {
	case errors.Is(err, errNull):
		return fmt.Errorf("target Null has no lock: %w [0, %d)", ErrRange, len(c.remotes))
	case c.lease != nil:
		return fmt.Errorf("attached memory has no lock: %w", ErrPart)
	case c.via != nil:
		return fmt.Errorf("a queue carries no lock; flush it before Unlock: %w", ErrPart)
	case err != nil:
		return err
	}
	return fmt.Errorf("%w: lock mode %d", driver.ErrInvalid, m)
}

// take takes the lock, and queues for it if need be.
func (l latch) take(ctx context.Context, m Mode, waits bool) error {
	state, ok, err := l.try(m)
	if ok || err != nil {
		return err
	}
	return l.missed(ctx, m, waits, state)
}

// missed queues for a lock that try did not get, if this rank waits for it.
func (l latch) missed(ctx context.Context, m Mode, waits bool, state uint64) error {
	if !waits {
		return l.taken(state, m)
	}
	if err := l.abandonedBy(state); err != nil {
		return err
	}
	ctx = wait.Context(ctx)
	g := l.c.gate(l.home)
	if err := g.enter(ctx, l.c); err != nil {
		return err
	}
	return l.wait(ctx, g, m)
}

// taken returns the reason why try has failed. It takes a lock that ranks have left to those that
// wait, none of which may be there any more.
func (l latch) taken(state uint64, m Mode) error {
	if state == waitersBit {
		if err := l.inherit(state); err != nil {
			return err
		}
		if _, ok, err := l.try(m); ok || err != nil {
			return err
		}
	}
	if err := l.abandonedBy(state); err != nil {
		return err
	}
	if err := l.c.team.Err(); err != nil {
		return err
	}
	return errTaken
}

// Unlock completes this rank's operations on the target, as Flush does, and
// releases the lock. It releases the lock even where the completion fails or ctx ends. A second call
// returns [ErrNotHeld]. Kind: one-sided.
func (h Held) Unlock(ctx context.Context) error {
	if h.h == nil {
		return &OpError{Op: "Unlock", Window: "(none)", Rank: -1, Target: -1, Index: -1, Err: ErrNotHeld}
	}
	c := h.core
	if c.ended() {
		return c.fail("Unlock", ErrFreed)
	}
	target, m := targetOf(h.word), heldModeOf(h.word)
	err := c.locks.remove(h)
	if err == nil {
		l := latch{c, c.remotes[target].Load(), target} // Lock reached it
		if l.r.Mem != nil {
			err = l.unlock(ctx, m)
		} else {
			err = l.unlockFar(ctx, m)
		}
	}
	return c.failAt("Unlock", target, -1, 0, err)
}

// unlock releases the lock behind this rank's operations at the home. The release is a request
// behind the puts where the connection keeps that order, and its response completes them.
func (l latch) unlock(ctx context.Context, m Mode) error {
	var err error
	p := l.r.Peer
	if !p.Orders() {
		err = p.Flush(wait.Context(ctx))
	}
	if l.r.Mem != nil {
		failed := l.release(m)
		tell(l.c.watch(l.r), l.r)
		return errors.Join(err, failed, p.Err())
	}
	return errors.Join(err, l.release(m), p.Flush(wait.Context(ctx)))
}

// at carries out an atomic on a word of the target's part of the window.
func (c *core) at(ctx context.Context, r *fabric.Remote, offset int, op driver.AtomicOp, operand, compare uint64) (uint64, error) {
	if r.Mem != nil {
		return atomics.Apply(r.Mem[offset:offset+8], op, operand, compare), nil
	}
	return r.Fetch(ctx, offset, fabric.Atomic{Op: op, Width: 8, Operand: operand, Compare: compare})
}

// word returns a word of this rank's own part of the window.
func (c *core) word(offset int) *atomic.Uint64 { return atomics.Word64(c.block.Bytes[offset:]) }
