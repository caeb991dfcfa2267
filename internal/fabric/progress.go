package fabric

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Progress polls the bindings that need it and hands completions to their operations. It
// reports whether a binding needed a poll. If none did, it costs a load or two.
//
// One goroutine polls at a time. A second one sets missed and goes on waiting. The first
// then polls once more on its behalf, since a completion may have arrived behind the
// first look.
func (f *Fabric) Progress() bool { return !f.idle() && f.look() }

// look polls as Progress does, but idle bindings, too.
func (f *Fabric) look() bool {
	for {
		if !f.polling.TryLock() {
			f.missed.Store(true)
			if !f.polling.TryLock() {
				return false
			}
		}
		if f.missed.Load() { // a store locks the bus, a load does not
			f.missed.Store(false)
		}
		f.looks++
		settled := f.poll()
		f.polling.Unlock()
		if settled > 0 {
			f.pump() // ahead of goroutines that wait for room
			// A waiter may have woken, looked too early and parked again.
			f.bell.Ring()
		}
		if !f.missed.Load() {
			return true
		}
	}
}

// apart runs do while no goroutine polls. The goroutine that polls must not call it.
func (f *Fabric) apart(do func()) {
	f.polling.Lock()
	do()
	f.polling.Unlock()
	if f.missed.Load() {
		f.bell.Ring() // a goroutine that found polling locked looks again
	}
}

// awaitPoll returns once no goroutine polls that began before.
func (f *Fabric) awaitPoll() { f.apart(func() {}) }

// poll settles the completions that are there. The caller holds polling.
func (f *Fabric) poll() (settled int) {
	for _, b := range f.bindings {
		n, err := b.cq.Poll(f.wc[:])
		if err != nil {
			f.overran(b, err)
			continue // or closed: a goroutine that waits sees that from its peer
		}
		for i := range f.wc[:n] {
			mutant.Hesitate(mutant.Operation)
			f.complete(b, &f.wc[i])
		}
		settled += n
	}
	return settled
}

// overran ends all operations if completions of b are lost: operations would wait for them
// in vain. The caller holds polling, which ending needs, too.
func (f *Fabric) overran(b *binding, err error) {
	if !errors.Is(err, driver.ErrOverrun) || b.overrun.Swap(true) || f.begin() != nil {
		return
	}
	go func() {
		defer f.making.Done()
		f.End(driver.ErrOverrun, "on "+b.name+": too many peers wrote at once")
		b.dead.Store(true)
		f.bell.Ring()
	}()
}

// idle reports whether all bindings are idle.
func (f *Fabric) idle() bool {
	for _, b := range f.bindings {
		if !b.idle() {
			return false
		}
	}
	return true
}

// idle reports whether Progress may leave out b. No signaled request of this rank is under
// way then. Also, either the device serves its targets by itself, or b has no queue pair. Only
// the failure of an unsignaled request may complete. It rings the bell, and a goroutine polls
// idle bindings, too, before it sleeps.
func (b *binding) idle() bool {
	return b.outstanding.Load() == 0 && (b.passive || b.qps.Load() == 0)
}

// complete settles one completion.
func (f *Fabric) complete(b *binding, wc *driver.Completion) {
	if wc.Op == driver.OpRecv || wc.Op == driver.OpRecvImm {
		b.received(wc)
		return
	}
	o := b.ops.find(wc.ID)
	if request := wc.Op == driver.OpSend && wc.Status == driver.Success; o != nil && !request { // the response completes a request to the target's CPU
		if wc.Status == driver.Success && b.tellsOfApplied(wc.Op) {
			o.peer.raiseFlushed(o.place)
		}
		o.status, o.err = wc.Status, wc.Err
		o.finish()
	}
	if wc.ID != unsignaledID {
		b.outstanding.Add(-1)
		b.completed.Add(1)
	}
	b.roomFor(wc)
	if wc.Status != driver.Success && wc.Status != driver.Canceled {
		f.failed(b, wc)
	}
}

// tellsOfApplied reports whether the completion of a request shows that the target has
// applied it and all earlier ones.
func (b *binding) tellsOfApplied(op driver.Opcode) bool {
	switch op {
	case driver.OpRead, driver.OpReadBlocks, driver.OpFetchAdd, driver.OpCmpSwap, driver.OpAtomic, driver.OpAccumulate:
		return true
	}
	return b.info.Writes.Applied
}

// failed marks the peer of an error completion.
func (f *Fabric) failed(b *binding, wc *driver.Completion) {
	rank, passive, ok := f.rankOf(b, wc.QP)
	if !ok || passive || f.closed.Load() {
		return
	}
	switch {
	case wc.Status == driver.Flushed: // the consequence of another failure
	case wc.Status == driver.RetryExceeded && !errors.Is(wc.Err, driver.ErrExhausted):
		f.health.suspect(rank, lostOver(b)+": "+detail(wc.Status, wc.Err))
	default:
		f.health.refused(rank, wc.Status, wc.Err)
	}
}

// Wait makes progress until ready is true, and then returns nil. If ctx ends first, it
// returns the cause of ctx's end.
func (f *Fabric) Wait(ctx context.Context, ready func() bool) error {
	return f.WaitWith(ctx, wait.Manner{}, ready)
}

// WaitStored is Wait for words that peers, or this rank, store by [atomics.StoreRelease], and for
// flags that are [Flag.Late]: their ring may overtake the store.
func (f *Fabric) WaitStored(ctx context.Context, ready func() bool) error {
	return f.WaitWith(ctx, wait.Stored(), ready)
}

// WaitWith is Wait in the manner m. Progress that makes system calls makes it a calling
// one. Under [Peer.NoWait] it looks once and makes no progress.
func (f *Fabric) WaitWith(ctx context.Context, m wait.Manner, ready func() bool) error {
	if f.hasty(ctx) {
		if ready() {
			return nil
		}
		return ErrNoRoom
	}
	look := func() bool { return ready() || f.Progress() && ready() }
	m.Calling = m.Calling || f.calls()
	return f.bell.WaitWith(ctx, m, look)
}

// calls reports whether Progress makes system calls.
func (f *Fabric) calls() bool {
	for _, b := range f.bindings {
		if b.info.CallingPolls && !b.idle() {
			return true
		}
	}
	return false
}

// awaitRoom waits until the queue to p may have room again. That is so once the count of
// completions has moved from before, which the caller took ahead of its try.
func (f *Fabric) awaitRoom(ctx context.Context, p *Peer, before uint64) error {
	b := p.bind
	return f.Wait(ctx, func() bool {
		return b.completed.Load() != before || b.outstanding.Load() == 0 || p.fail.Load() != nil
	})
}

// verdict returns the error of a peer whose connection broke. It waits until health
// decides, which takes at most the grace period.
func (f *Fabric) verdict(ctx context.Context, p *Peer, cause string) error {
	f.health.suspect(p.rank, lostOver(p.bind)+": "+cause)
	err := f.Wait(ctx, func() bool { return p.fail.Load() != nil || f.closed.Load() })
	switch {
	case p.Err() != nil:
		return p.Err()
	case err != nil:
		return err
	}
	return ErrClosed
}
