package window

import (
	"context"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/wait"
)

// takeFar is take for a home that is not mapped. A free lock costs one atomic, and no other
// goroutine. If ctx ends first, takeFar gives the lock back.
func (l latch) takeFar(ctx context.Context, m Mode, waits bool) error {
	ctx = wait.Context(ctx)
	req, err := l.start(ctx, l.grab(m))
	if err != nil {
		return err
	}
	state, err := l.end(ctx, req, m, latch.regret)
	if err != nil || got(m, state) {
		return err
	}
	return l.missedFar(ctx, m, waits, state)
}

// regret undoes a grab that found the state, for a call that has ended.
func (l latch) regret(m Mode, state uint64) error {
	if got(m, state) {
		return l.release(m)
	}
	return l.back(m)
}

// missedFar is missed for a home that is not mapped.
func (l latch) missedFar(ctx context.Context, m Mode, waits bool, state uint64) error {
	return l.c.within(ctx, l.r, func() error {
		if err := l.back(m); err != nil {
			return err
		}
		return l.missed(ctx, m, waits, state)
	}, func() { _ = l.release(m) })
}

// unlockFar is unlock for a home that is not mapped. If no rank waits for the lock, it costs one
// atomic, and no other goroutine.
func (l latch) unlockFar(ctx context.Context, m Mode) error {
	ctx = wait.Context(ctx)
	if !l.r.Peer.Orders() {
		return l.unlockWithin(ctx, m)
	}
	req, err := l.start(ctx, l.drop(m))
	if err != nil { // ctx or the connection has ended
		return l.unlockWithin(ctx, m)
	}
	state, err := l.end(ctx, req, m, latch.passOn)
	if err == nil && l.passes(m, state) {
		err = l.c.within(ctx, l.r, func() error { return l.pass(m) }, func() {})
	}
	if err != nil {
		return err
	}
	return l.r.Peer.Flush(ctx) // the response has completed this rank's operations
}

// passOn hands over the lock, if need be, behind a drop that found the state.
func (l latch) passOn(m Mode, state uint64) error {
	if l.passes(m, state) {
		return l.pass(m)
	}
	return nil
}

// unlockWithin is unlock on another goroutine. If ctx ends first, that goroutine goes on.
func (l latch) unlockWithin(ctx context.Context, m Mode) error {
	return l.c.within(ctx, l.r, func() error { return l.unlock(context.WithoutCancel(ctx), m) }, func() {})
}

// start posts an atomic on the state.
func (l latch) start(ctx context.Context, a fabric.Atomic) (fabric.Request, error) {
	return l.r.StartFetch(ctx, l.c.layout.lock, a, nil)
}

// end returns the state that an atomic found. The atomic must not be given up: this rank would not
// know the state. If ctx ends and settleTime passes, end returns the cause. Another goroutine waits
// on then, and calls late.
func (l latch) end(ctx context.Context, req fabric.Request, m Mode, late func(latch, Mode, uint64) error) (state uint64, err error) {
	if l.c.team.Await(ctx, req.Over) != nil {
		return l.endWithin(ctx, req, m, late)
	}
	return req.Value(context.Background())
}

// endWithin is end behind the end of ctx, or the loss of a member.
func (l latch) endWithin(ctx context.Context, req fabric.Request, m Mode, late func(latch, Mode, uint64) error) (uint64, error) {
	var state uint64
	err := l.c.within(ctx, l.r, func() (err error) {
		state, err = req.Value(context.Background())
		return err
	}, func() { _ = late(l, m, state) })
	if err != nil {
		return 0, err // state may still change
	}
	return state, nil
}
