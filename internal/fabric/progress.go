package fabric

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/verbs/driver"
)

// Progress polls what needs polling and hands completions to their operations.
// It tells whether there was anything to poll; otherwise it costs a load or two.
//
// Of several goroutines one polls. Another one that comes meanwhile leaves word
// and goes on waiting; the first polls once more on its behalf, since what it
// came for may have arrived behind the first look.
func (f *Fabric) Progress() bool { return !f.idle() && f.look() }

// look is Progress that also polls what is idle.
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
			f.pump() // ahead of those that wait for room
			// Their waiters may have been woken, looked too early and parked again.
			f.bell.Ring()
		}
		if !f.missed.Load() {
			return true
		}
	}
}

// poll settles the completions that are there. Called with polling held.
func (f *Fabric) poll() (settled int) {
	for _, b := range f.bindings {
		n, err := b.cq.Poll(f.wc[:])
		if err != nil {
			f.overran(b, err)
			continue // or closed: whoever waits sees that from its peer
		}
		for i := range f.wc[:n] {
			f.complete(b, &f.wc[i])
		}
		settled += n
	}
	return settled
}

// overran ends everything if completions of b are lost, which operations would
// wait for in vain. Called with polling held, which ending needs too.
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

func (f *Fabric) idle() bool {
	for _, b := range f.bindings {
		if !b.idle() {
			return false
		}
	}
	return true
}

// idle tells that polling b would be in vain, as a rule: nothing of ours that will
// complete is under way, and its targets need no help. Unsignalled requests complete
// when they fail, which rings the bell: whoever is about to sleep looks for that.
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
	if asked := wc.Op == driver.OpSend && wc.Status == driver.Success; o != nil && !asked { // else the answer completes it
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

// tellsOfApplied tells whether a completed request means that it, and what was
// posted before it, has been applied at the target.
func (b *binding) tellsOfApplied(op driver.Opcode) bool {
	switch op {
	case driver.OpRead, driver.OpFetchAdd, driver.OpCmpSwap, driver.OpAtomic:
		return true
	}
	return b.info.Writes.Applied
}

// failed takes the consequences of an error completion for its peer.
func (f *Fabric) failed(b *binding, wc *driver.Completion) {
	rank, passive, ok := f.rankOf(b, wc.QP)
	if !ok || passive || f.closed.Load() {
		return
	}
	switch {
	case wc.Status == driver.Flushed: // the consequence of another failure
	case wc.Status == driver.RetryExceeded && !errors.Is(wc.Err, driver.ErrExhausted):
		f.health.suspect(rank, detail(wc.Status, wc.Err))
	default:
		f.health.refused(rank, wc.Status, wc.Err)
	}
}

// refused marks the peer whose queue pair failed although the rank is well.
func (h *health) refused(rank int, status driver.Status, cause error) {
	h.mu.Lock()
	p := h.peers[rank]
	h.mu.Unlock()
	if p != nil {
		p.refusedBy(status, cause)
	}
}

// Wait returns nil once ready is true, or the cause of ctx's end. It makes
// progress meanwhile.
func (f *Fabric) Wait(ctx context.Context, ready func() bool) error {
	return f.WaitShared(ctx, false, ready)
}

// WaitShared is Wait on a core that other ranks need if shared is true. It then looks a few
// times only before it makes way, as Wait does where Progress makes system calls. Under
// [Peer.NoWait] it looks once and makes no progress.
func (f *Fabric) WaitShared(ctx context.Context, shared bool, ready func() bool) error {
	if f.hasty(ctx) {
		if ready() {
			return nil
		}
		return ErrNoRoom
	}
	look := func() bool { return ready() || f.Progress() && ready() }
	if shared || f.calls() {
		return f.bell.WaitCalling(ctx, look)
	}
	return f.bell.Wait(ctx, look)
}

// calls tells whether Progress makes system calls.
func (f *Fabric) calls() bool {
	for _, b := range f.bindings {
		if b.info.CallingPolls && !b.idle() {
			return true
		}
	}
	return false
}

// awaitRoom waits until the queue to p may have room again: until there was a
// completion since the count was before, which the caller took ahead of its try.
func (f *Fabric) awaitRoom(ctx context.Context, p *Peer, before uint64) error {
	b := p.bind
	return f.Wait(ctx, func() bool {
		return b.completed.Load() != before || b.outstanding.Load() == 0 || p.fail.Load() != nil
	})
}

// verdict waits until it is known what became of a peer whose connection broke,
// which health decides within its grace period.
func (f *Fabric) verdict(ctx context.Context, p *Peer, cause string) error {
	f.health.suspect(p.rank, cause)
	err := f.Wait(ctx, func() bool { return p.fail.Load() != nil || f.closed.Load() })
	switch {
	case p.Err() != nil:
		return p.Err()
	case err != nil:
		return err
	}
	return ErrClosed
}
