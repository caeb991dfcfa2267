package window

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
)

// takeFar is take for a target that is not mapped. A free lock costs one atomic, and no other
// goroutine. If ctx ends first, it gives the lock back.
func (c *core) takeFar(ctx context.Context, r *fabric.Remote, target int, m Mode, waits bool) error {
	if m == Exclusive && c.gates[target].CompareAndSwap(false, true) {
		if taken, err := c.swapFar(ctx, r, target); taken || err != nil {
			return err
		}
	}
	return c.within(ctx, r, func() error { return c.take(ctx, r, target, m, waits) },
		func() { _ = c.unlock(context.WithoutCancel(ctx), r, m) })
}

// swapFar takes a free exclusive lock. The caller has closed the gate. swapFar opens it once
// the target has answered, which may be after its return if ctx has ended.
func (c *core) swapFar(ctx context.Context, r *fabric.Remote, target int) (taken bool, err error) {
	open := func() {
		c.gates[target].Store(false)
		c.team.Bell().Ring()
	}
	whole, old := context.WithoutCancel(ctx), make([]byte, 8)
	req, err := r.StartFetch(whole, c.layout.lock, fabric.Atomic{Op: driver.AtomicCmpSwap, Width: 8,
		Operand: uint64(c.team.Rank+1) << writerShift}, old)
	if err != nil {
		open()
		return false, err
	}
	err = c.settle(ctx, r, req, func(err error, left bool) {
		if left && err == nil && atomics.Uint(old) == 0 {
			_ = c.unlock(whole, r, Exclusive)
		}
		open()
	})
	if err != nil {
		return false, err
	}
	seen := atomics.Uint(old)
	return seen == 0, c.abandonedBy(seen)
}

// releaseFar is release for a target that is not mapped. The addition that releases the lock
// takes effect behind this rank's operations, and the look at the waiters behind the
// addition. So one round trip completes all.
func (c *core) releaseFar(ctx context.Context, r *fabric.Remote, m Mode) error {
	whole := context.WithoutCancel(ctx)
	if len(c.remotes) > 64 || !r.Peer.Straight() {
		err := c.complete(ctx, r)
		return errors.Join(err, c.within(ctx, r, func() error { return c.unlock(whole, r, m) }, func() {}))
	}
	r.Peer.Order()
	err := r.Update(whole, c.layout.lock, fabric.Atomic{Op: driver.AtomicAdd, Width: 8, Operand: c.minus(m)})
	if err != nil {
		return err
	}
	r.Peer.Order()
	waiters := make([]byte, 8)
	req, err := r.StartFetch(whole, c.layout.waiters, fabric.Atomic{Op: driver.AtomicLoad, Width: 8}, waiters)
	if err != nil {
		return err
	}
	wake := func() error { return errors.Join(c.wake(whole, 0, atomics.Uint(waiters))...) }
	err = c.settle(ctx, r, req, func(err error, left bool) {
		if left && err == nil {
			_ = wake()
		}
	})
	if err != nil || atomics.Uint(waiters) == 0 {
		return err
	}
	return c.within(ctx, r, wake, func() {})
}

// settle waits for a started atomic, which must not be given up half-way. It calls answered
// with the result. If ctx ends first, settle returns the cause, and another goroutine calls
// answered later, with left.
func (c *core) settle(ctx context.Context, r *fabric.Remote, req fabric.Request, answered func(err error, left bool)) error {
	whole := context.WithoutCancel(ctx)
	if c.team.Await(ctx, req.Complete) == nil {
		err := req.Wait(whole)
		answered(err, false)
		return err
	}
	err := c.within(ctx, r, func() error {
		err := req.Wait(whole)
		if err != nil {
			answered(err, false)
		}
		return err
	}, func() { answered(nil, true) })
	if err == nil {
		answered(nil, false)
	}
	return err
}
