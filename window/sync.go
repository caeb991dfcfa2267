package window

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
)

// Flush returns when this rank's earlier operations on the target have reached
// its memory: remote completion. Any rank that learns of Flush's return, by
// whatever path, sees them. It covers operations through other windows, too. It does not
// fill the buffers of started gets: each needs [Request.Wait]. Kind: one-sided.
func (w *Window[T]) Flush(ctx context.Context, target int) error {
	if v := w.mapped(target); v != nil {
		if err := v.remote.Peer.FlushMapped(); err == nil {
			tell(v.watch, v.remote)
			return nil
		}
	}
	return w.flush(ctx, target)
}

// flush waits until all operations of this rank at a target are complete there.
func (c *core) flush(ctx context.Context, target int) error {
	r, err := c.remote(ctx, target)
	if err == nil {
		err = c.complete(ctx, r)
	}
	return c.failAt("Flush", target, -1, 0, err)
}

// complete flushes a target, and wakes its goroutines that wait for what this rank put.
func (c *core) complete(ctx context.Context, r *fabric.Remote) error {
	var err error
	if c.via != nil && r.Mem != nil {
		err = r.Peer.FlushMapped() // posts of others need no end
	} else {
		err = r.Peer.Flush(ctx)
	}
	tell(c.watch(r), r)
	return err
}

// FlushAll is Flush of every target that this rank has reached through this window; of
// several errors it returns the first. [runtime.Job.FlushAll] covers all windows. Kind:
// one-sided.
func (w *Window[T]) FlushAll(ctx context.Context) error { return w.fail("FlushAll", w.flushAll(ctx)) }

// flushAll waits until all operations of this rank are complete at all targets.
func (c *core) flushAll(ctx context.Context) error {
	if c.ended() {
		return ErrFreed
	}
	return c.flushReached(ctx)
}

// flushReached flushes every target that this rank has reached.
func (c *core) flushReached(ctx context.Context) error {
	var first error
	for i := range c.remotes {
		r := c.remotes[i].Load()
		if r == nil {
			continue // never reached: nothing to complete
		}
		if err := c.complete(ctx, r); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Order has this rank's later operations on the target take effect after its
// earlier ones, through whatever window. It completes nothing and does not wait. Kind: local.
func (w *Window[T]) Order(target int) error {
	if w.ended() || uint(target) >= uint(len(w.remotes)) {
		_, err := w.remote(context.Background(), target)
		return w.failAt("Order", target, -1, 0, err)
	}
	if r := w.remotes[target].Load(); r != nil {
		r.Peer.Order()
	}
	return nil
}

// Fence is FlushAll and a barrier: every rank sees afterward all that any rank
// did to this window before. Kind: collective.
func (w *Window[T]) Fence(ctx context.Context) error {
	if err := w.flushAll(ctx); err != nil {
		return w.fail("Fence", w.leave(team.Fence, err))
	}
	return w.fail("Fence", w.team.Sync(ctx, team.Fence))
}

// leave reports to the team that this rank does not come to a collective call,
// because of err. A use after Free is a mistake of this rank alone, so leave does
// not report it.
func (c *core) leave(call team.Collective, err error) error {
	if errors.Is(err, ErrFreed) {
		return err
	}
	return c.team.Failed(call, err)
}

// Free ends the window at all ranks and gives its memory back. Later operations on
// it return ErrFreed; slices of its memory read garbage but never fault. Its parts end
// with it; Free of a part returns [ErrPart].
// Precondition: no other goroutine of this rank is inside an operation on a mapped
// target, because Free cannot stop its stores. A rank that holds a lock gets
// [ErrHeld], and the window ends nevertheless. After any other error this rank's
// memory stays until [runtime.Team.Free]. Kind: collective.
func (w *Window[T]) Free(ctx context.Context) error {
	if w.parts.whole != any(w) {
		return w.fail("Free", ErrPart)
	}
	ctx = wait.Context(ctx)
	held := w.abandonLocks(ctx) // first: the end of a window wakes no waiters
	if w.freed.Swap(true) {
		return w.fail("Free", ErrFreed)
	}
	w.unmap()
	w.parts.end()
	w.attached.end()
	w.team.Bell().Ring() // wakes waits for notifications and locks
	err := w.closeGates(ctx)
	if err == nil && w.watching.Load() != 0 {
		err = w.team.Await(ctx, func() bool { return w.watching.Load() == 0 })
	}
	if err == nil {
		w.team.EndUse(w.region)
	}
	routes := w.parts.routes(w.core)
	for _, c := range routes {
		c.retire()
	}
	for _, c := range routes {
		if err == nil {
			err = c.flushReached(ctx)
		}
	}
	if err != nil {
		err = w.team.Failed(team.Free, err)
	} else {
		err = w.team.Sync(ctx, team.Free)
	}
	// After a failure other ranks may still use this memory.
	return w.fail("Free", errors.Join(held, err, w.giveUp(err != nil)))
}

// closeGates waits until no goroutine of this rank waits for a lock any more, or finishes what a
// call began. A later atomic would reach memory that belongs to another window by then.
func (c *core) closeGates(ctx context.Context) error {
	for i := range c.gates {
		if g := c.gates[i].Load(); g != nil {
			if err := g.close(ctx, c); err != nil {
				return err
			}
		}
	}
	if c.locks.inside.Load() > 0 {
		if err := c.team.Await(ctx, func() bool { return c.locks.inside.Load() == 0 }); err != nil {
			return err
		}
	}
	return c.locks.settle(ctx, c)
}
