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
	use  uint64
}

// A window has one lock at each rank. A rank that finds it taken sets its bit in
// waiters and sleeps. A rank that releases the lock wakes all waiters, and they
// try again. While a writer waits, readers do not take the lock, so that they
// cannot starve the writer.
//
//	state:   63         62             32 31              0
//	         abandoned  writer's rank + 1  shared holders
//	pending: writers that wait
//	waiters: one bit per rank      wake: grows at a waiter when it shall try again
//
// A holder that ends the window or the job without releasing it sets abandoned, and its
// rank in the writer's place. All ranks that wait for the lock then, or later, get an
// error.
//
// A waiter sets its bit, tries, and sleeps. A holder releases, reads the bits,
// and wakes. All these are atomics at the same rank, so that one of the two sees
// the other's.
const (
	writerShift  = 32
	abandonedBit = uint64(1) << 63
	pendingAt    = 8 // behind the state word
)

// Lock waits for the target's lock. Locks are advisory: accesses do not check them. If a
// rank of the team is gone and the call would have to wait, it fails, since that rank may
// be the holder. The holder must release the lock before it frees the window or closes the
// job; otherwise the call fails with [ErrHeld]. Kind: one-sided.
func (w *Window[T]) Lock(ctx context.Context, target int, m Mode) (Held, error) {
	ctx = wait.Context(ctx)
	return w.lockBy(ctx, "Lock", target, m, true)
}

// TryLock is Lock that waits for no other holder: shmem_test_lock. ok is false, and held empty, if
// another rank or goroutine has the lock in the way of m, or waits for it ahead of this rank. Kind: one-sided.
func (w *Window[T]) TryLock(ctx context.Context, target int, m Mode) (h Held, ok bool, err error) {
	ctx = wait.Context(ctx)
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
	switch {
	case errors.Is(err, errNull):
		err = fmt.Errorf("target Null has no lock: %w [0, %d)", ErrRange, len(c.remotes))
	case c.lease != nil:
		err = fmt.Errorf("attached memory has no lock: %w", ErrPart)
	case c.via != nil:
		err = fmt.Errorf("a queue carries no lock; flush it before Unlock: %w", ErrPart)
	case err == nil && m != Shared && m != Exclusive:
		err = fmt.Errorf("%w: lock mode %d", driver.ErrInvalid, m)
	case err == nil && r.Mem != nil:
		err = c.take(ctx, r, target, m, waits)
	case err == nil:
		err = c.takeFar(ctx, r, target, m, waits)
	}
	if err != nil {
		if whole := c.team.Err(); whole != nil {
			err = whole // this failure follows from it
		}
		return Held{}, c.failAt(op, target, -1, 0, err)
	}
	h := c.locks.add(c, target, m)
	if h == nil {
		err := errors.Join(ErrFreed, c.unlock(context.WithoutCancel(ctx), r, m))
		return Held{}, c.failAt(op, target, -1, 0, err)
	}
	return Held{c, h, h.uses.Load()}, nil
}

func (c *core) take(ctx context.Context, r *fabric.Remote, target int, m Mode, waits bool) error {
	if waits {
		return c.acquire(ctx, r, target, m)
	}
	return c.attempt(ctx, r, target, m)
}

// unbroken returns a context for an atomic at a target, which must not end half-way. An atomic on
// mapped memory looks at none.
func unbroken(ctx context.Context, r *fabric.Remote) context.Context {
	if r.Mem != nil {
		return ctx
	}
	return context.WithoutCancel(ctx)
}

// attempt is acquire that waits neither for other ranks nor for other goroutines.
func (c *core) attempt(ctx context.Context, r *fabric.Remote, target int, m Mode) error {
	gate := &c.gates[target]
	if !gate.CompareAndSwap(false, true) {
		if c.freed.Load() {
			return ErrFreed // Free has closed the gate
		}
		return errTaken
	}
	defer func() {
		gate.Store(false)
		c.team.Bell().Ring()
	}()
	ok, err := c.try(unbroken(ctx, r), r, m)
	if err == nil && !ok {
		return errTaken
	}
	return err
}

// Unlock completes this rank's operations on the target, as Flush does, and
// releases the lock. Kind: one-sided.
func (l Held) Unlock(ctx context.Context) error {
	ctx = wait.Context(ctx)
	h := l.h
	if h == nil {
		return &OpError{Op: "Unlock", Window: "(none)", Rank: -1, Target: -1, Index: -1, Err: ErrNotHeld}
	}
	c := l.core
	if c.ended() {
		return c.fail("Unlock", ErrFreed)
	}
	if !h.uses.CompareAndSwap(l.use, l.use+1) { // h may be another lock by now
		return c.fail("Unlock", ErrNotHeld)
	}
	target, mode := h.target, h.mode // remove gives h to the next lock
	r, err := c.remote(ctx, target)
	if err == nil && !c.locks.remove(h) {
		err = ErrHeld // abandonLocks has told the other ranks
	}
	if err == nil {
		err = c.release(ctx, r, mode)
	}
	return c.failAt("Unlock", target, -1, 0, err)
}

// release completes this rank's operations on the target, and releases the lock even where that
// fails or ctx ends.
func (c *core) release(ctx context.Context, r *fabric.Remote, m Mode) error {
	if r.Mem == nil {
		return c.releaseFar(ctx, r, m)
	}
	return errors.Join(c.complete(ctx, r), c.unlock(ctx, r, m))
}

// acquire takes the lock. One goroutine of this rank at a time acquires a
// target's lock, so that a rank needs one bit among the waiters. ctx ends the
// waits, but it interrupts no atomic: an interrupted atomic could have taken the
// lock, or left marks for ever.
func (c *core) acquire(ctx context.Context, r *fabric.Remote, target int, m Mode) error {
	gate := &c.gates[target]
	if !gate.CompareAndSwap(false, true) {
		if err := c.team.Await(ctx, func() bool { return c.freed.Load() || gate.CompareAndSwap(false, true) }); err != nil {
			return err
		}
		if c.freed.Load() {
			return ErrFreed
		}
	}
	defer func() {
		gate.Store(false)
		c.team.Bell().Ring()
	}()
	ok, err := c.try(unbroken(ctx, r), r, m)
	if ok || err != nil {
		return err
	}
	return c.queue(ctx, r, m)
}

// try takes the lock if it is free. Readers do not take it while writers wait.
func (c *core) try(ctx context.Context, r *fabric.Remote, m Mode) (bool, error) {
	if m == Exclusive {
		seen, err := c.at(ctx, r, c.layout.lock, driver.AtomicCmpSwap, uint64(c.team.Rank+1)<<writerShift, 0)
		return seen == 0 && err == nil, errors.Join(err, c.abandonedBy(seen))
	}
	writers, err := c.at(ctx, r, c.layout.lock+pendingAt, driver.AtomicLoad, 0, 0)
	if err != nil || writers > 0 {
		return false, err
	}
	seen, err := c.at(ctx, r, c.layout.lock, driver.AtomicLoad, 0, 0)
	for err == nil && seen>>writerShift == 0 {
		old := seen
		if seen, err = c.at(ctx, r, c.layout.lock, driver.AtomicCmpSwap, old+1, old); seen == old && err == nil {
			return true, nil
		}
	}
	return false, errors.Join(err, c.abandonedBy(seen))
}

// queue waits for the lock with the other waiters. It takes this rank's marks
// back, however it ends.
func (c *core) queue(ctx context.Context, r *fabric.Remote, m Mode) (err error) {
	whole := unbroken(ctx, r)
	if err := c.mark(whole, r, m, true); err != nil {
		return err
	}
	defer func() {
		// After a failure mark fails, too, and its error says nothing new.
		if unmarked := c.mark(whole, r, m, false); err == nil {
			err = unmarked
		}
	}()
	wake := c.word(c.layout.wake)
	for {
		seen := wake.Load()
		ok, err := c.try(whole, r, m)
		if ok || err != nil {
			return err
		}
		if err := c.team.Await(ctx, func() bool { return wake.Load() != seen || c.freed.Load() }); err != nil {
			return err
		}
		if c.freed.Load() {
			return ErrFreed
		}
	}
}

// mark enters this rank among the waiters or takes it out. A writer that stops
// waiting has the readers that it held off try again.
func (c *core) mark(ctx context.Context, r *fabric.Remote, m Mode, waiting bool) error {
	word, bit := c.layout.waiters+c.team.Rank/64*8, uint64(1)<<(c.team.Rank%64)
	op, one := driver.AtomicOr, uint64(1)
	if !waiting {
		op, bit, one = driver.AtomicAnd, ^bit, ^uint64(0)
	}
	var err error
	if m == Exclusive {
		_, err = c.at(ctx, r, c.layout.lock+pendingAt, driver.AtomicAdd, one, 0)
	}
	if _, err2 := c.at(ctx, r, word, op, bit, 0); err2 != nil || err != nil {
		return errors.Join(err, err2)
	}
	if m == Exclusive && !waiting {
		return c.wakeAll(ctx, r)
	}
	return nil
}

// unlock releases the lock and wakes all waiters.
func (c *core) unlock(ctx context.Context, r *fabric.Remote, m Mode) error {
	if _, err := c.at(ctx, r, c.layout.lock, driver.AtomicAdd, c.minus(m), 0); err != nil {
		return err
	}
	return c.wakeAll(ctx, r)
}

// minus returns what a holder adds to the lock's state to release it.
func (c *core) minus(m Mode) uint64 {
	if m == Exclusive {
		return -(uint64(c.team.Rank+1) << writerShift)
	}
	return ^uint64(0) // one shared holder less
}

// wakeAll has every waiter of r's lock try again.
func (c *core) wakeAll(ctx context.Context, r *fabric.Remote) error {
	var errs []error
	for i := range (len(c.remotes) + 63) / 64 {
		bits, err := c.at(ctx, r, c.layout.waiters+i*8, driver.AtomicLoad, 0, 0)
		if err != nil {
			return err
		}
		errs = append(errs, c.wake(ctx, i*64, bits)...)
	}
	return errors.Join(errs...)
}

// wake has the waiters among the ranks from first on try again, one for each bit.
func (c *core) wake(ctx context.Context, first int, bits uint64) (errs []error) {
	for rank := first; bits != 0; rank, bits = rank+1, bits>>1 {
		if bits&1 != 0 && rank < len(c.remotes) {
			errs = append(errs, c.wakeUp(ctx, rank))
		}
	}
	return errs
}

func (c *core) wakeUp(ctx context.Context, rank int) error {
	r, err := c.remote(ctx, rank)
	if err == nil {
		err = r.PostFlag(ctx, fabric.Flag{Offset: c.layout.wake, Add: true, Value: 1})
	}
	if err != nil && c.team.Gone(c.team.Members[rank:rank+1]) != nil {
		return nil //nolint:nilerr // a dead rank needs no waking
	}
	return err
}

// at carries out an atomic on a word of the target's lock.
func (c *core) at(ctx context.Context, r *fabric.Remote, offset int, op driver.AtomicOp, operand, compare uint64) (uint64, error) {
	if r.Mem != nil {
		return atomics.Apply(r.Mem[offset:offset+8], op, operand, compare), nil
	}
	return r.Fetch(ctx, offset, fabric.Atomic{Op: op, Width: 8, Operand: operand, Compare: compare})
}

// word returns a word of this rank's own part of the window.
func (c *core) word(offset int) *atomic.Uint64 { return atomics.Word64(c.block.Bytes[offset:]) }
