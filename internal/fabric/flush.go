package fabric

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Flush returns when everything that was posted to the peer before is applied
// to its memory, and everything that was stored to it by mapping is visible.
func (p *Peer) Flush(ctx context.Context) error {
	if mutant.FlushWithoutBarrier {
		return p.Err()
	}
	fullBarrier()
	if p.qp == nil {
		return p.Err()
	}
	return p.acknowledge(ctx)
}

// FlushAll flushes every peer that this rank is connected to, and returns the
// first error.
func (f *Fabric) FlushAll(ctx context.Context) error { return flush(ctx, f.connected()) }

// FlushTo flushes those of ranks that this rank is connected to, and returns the
// first error.
func (f *Fabric) FlushTo(ctx context.Context, ranks []int) error {
	return flush(ctx, slices.DeleteFunc(f.connected(), func(p *Peer) bool { return !slices.Contains(ranks, p.rank) }))
}

func flush(ctx context.Context, peers []*Peer) error {
	var first error
	for _, p := range peers {
		if err := p.Flush(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// connected returns the peers that this rank is connected to, itself among
// them. Nothing can have been posted to the others.
func (f *Fabric) connected() (peers []*Peer) {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	for _, d := range f.peers {
		select {
		case <-d.done:
			if d.err == nil {
				peers = append(peers, d.peer)
			}
		default:
		}
	}
	return peers
}

// FlushMapped is Flush for a caller that only ever used the peer's mapping.
func (p *Peer) FlushMapped() error {
	if !mutant.FlushWithoutBarrier {
		fullBarrier()
	}
	return p.Err()
}

// fullBarrier orders this thread's earlier stores before its later loads, as
// every locked instruction does. The word is its own: no cache line is shared.
func fullBarrier() {
	var word uint32
	atomic.AddUint32(&word, 1)
}

// acknowledge reads from the peer behind everything posted so far, unless the
// completion of another request has told already that it is applied. The queue
// pair's order makes the answer an acknowledgement of that.
func (p *Peer) acknowledge(ctx context.Context) error {
	asked := p.questions()
	if p.flushed.Load() >= p.posted.Load() && !p.line.waits.Load() {
		return errors.Join(p.awaitAnswers(ctx, asked), p.Err())
	}
	o := p.bind.ops.take(&p.head)
	o.wr[0] = driver.WorkRequest{Op: driver.OpRead, Remote: p.head.addr.Add(headFlush)}
	o.result(0, 8)
	if _, err := o.start(ctx, 1); err != nil {
		return err
	}
	if err := o.settle(ctx); err != nil {
		return err
	}
	return errors.Join(p.awaitAnswers(ctx, asked), p.Err())
}

// raiseFlushed notes that the first upTo posts are applied.
func (p *Peer) raiseFlushed(upTo uint64) {
	for {
		old := p.flushed.Load()
		if old >= upTo || p.flushed.CompareAndSwap(old, upTo) {
			return
		}
	}
}

// Order has everything posted later take effect after everything posted
// before. Stores by mapping are ordered among themselves by the caller's
// atomics and need nothing here.
func (p *Peer) Order() {
	p.mu.Lock()
	p.fence = true
	p.orderAt.Store(p.asked.Load())
	p.mu.Unlock()
}
