package fabric

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Flush waits until this rank's earlier posts are applied to the peer's memory. Its
// earlier stores to mapped memory are visible then, too.
func (p *Peer) Flush(ctx context.Context) error {
	begun := p.beginFlush(ctx)
	return begun.end(ctx)
}

// A flushing is a flush of one peer that has begun. It is not over until end returns.
type flushing struct {
	peer     *Peer
	read     *op // the READ that acknowledges the posts; nil: none is needed
	requests uint64
	err      error // why it ended early
}

// beginFlush posts what Flush needs, but does not wait for the response.
func (p *Peer) beginFlush(ctx context.Context) flushing {
	if mutant.FlushWithoutBarrier {
		return flushing{err: p.Err()}
	}
	atomics.Fence()
	if p.bind == nil {
		return flushing{err: p.Err()}
	}
	return p.acknowledge(ctx)
}

// end returns once the flush is over.
func (f *flushing) end(ctx context.Context) error {
	if f.peer == nil || f.err != nil {
		return f.err
	}
	if f.read != nil {
		if err := f.read.settle(ctx); err != nil {
			return err
		}
	}
	return errors.Join(f.peer.awaitResponses(ctx, f.requests), f.peer.Err())
}

// FlushAll flushes every peer that this rank is connected to, and returns the
// first error.
func (f *Fabric) FlushAll(ctx context.Context) error { return Flush(ctx, f.connected()) }

// FlushMayWait reports whether this rank has queue pairs, or composers in line that need one. Without both it has only
// stored to mapped memory.
func (f *Fabric) FlushMayWait() bool {
	// The lines come first: a composer that has left one by then has posted over a queue pair.
	return f.pending.some.Load() > 0 || slices.ContainsFunc(f.bindings, func(b *binding) bool { return b.qps.Load() > 0 })
}

// FlushMapped flushes ranks for a caller that used only their mapped memory. It returns the error of the first of them
// that is gone or lost.
func (f *Fabric) FlushMapped(ranks []int) error {
	if !mutant.FlushWithoutBarrier {
		atomics.Fence() // for all of them
	}
	return f.health.lost(ranks)
}

// FlushTo flushes those of ranks that this rank is connected to, and returns the
// first error.
func (f *Fabric) FlushTo(ctx context.Context, ranks []int) error {
	if !f.FlushMayWait() {
		return f.FlushMapped(ranks)
	}
	return Flush(ctx, f.Unflushed(ranks, nil))
}

// Unflushed returns those of ranks that this rank is connected to, for [Flush]. It leaves out those of told whose
// connections keep order ([Peer.Orders]): a flag that this rank posts to them is behind its writes. Stores of this rank
// to mapped memory are visible to all ranks when it returns.
func (f *Fabric) Unflushed(ranks, told []int) (peers []*Peer) {
	if !mutant.FlushWithoutBarrier {
		atomics.Fence()
	}
	f.peersMu.Lock()
	for _, rank := range ranks {
		if d := f.peers[rank]; d != nil && d.connected() {
			peers = append(peers, d.peer)
		}
	}
	f.peersMu.Unlock()
	return slices.DeleteFunc(peers, func(p *Peer) bool { return slices.Contains(told, p.rank) && p.Orders() })
}

// Flush flushes several peers at the same time. It returns the first error, after all flushes have
// ended.
func Flush(ctx context.Context, peers []*Peer) error {
	var first error
	if mutant.FlushOnePeer && len(peers) > 0 {
		peers = peers[:1]
	}
	begun := make([]flushing, len(peers))
	for i, p := range peers {
		begun[i] = p.beginFlush(ctx)
	}
	for i := range begun {
		if err := begun[i].end(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// connected returns the peers that this rank is connected to, itself among them. It
// cannot have posted to any further rank.
func (f *Fabric) connected() (peers []*Peer) {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	for _, d := range f.peers {
		if d.connected() {
			peers = append(peers, d.peer)
		}
	}
	return peers
}

// FlushMapped flushes the peer for a caller that used only its mapped memory.
func (p *Peer) FlushMapped() error {
	if !mutant.FlushWithoutBarrier {
		atomics.Fence()
	}
	return p.Err()
}

// acknowledge begins to read from the peer behind all posts so far, unless another completion
// has already shown that they are applied. The queue pair keeps order, so the response to the
// READ acknowledges them. Stripes may have posts that are not known to be applied, such as
// those of a transfer that ended early. They get a READ each, for which acknowledge waits.
func (p *Peer) acknowledge(ctx context.Context) flushing {
	for _, s := range p.stripes.late() {
		begun := s.acknowledge(ctx)
		if err := begun.end(ctx); err != nil {
			return flushing{err: err}
		}
	}
	// The line comes first: a composer that has left it by then counts among posts and requests.
	if !p.line.waits.Load() && p.flushed.Load() >= p.posts() {
		return flushing{peer: p, requests: p.requested()}
	}
	o, err := p.head.newOp(ctx)
	if err != nil {
		return flushing{err: err}
	}
	o.wr[0] = driver.WorkRequest{Op: driver.OpRead, Remote: p.head.addr.Add(headFlush)}
	o.result(0, 8)
	requests := p.requested()
	if _, err := o.start(ctx, 1); err != nil {
		return flushing{err: err}
	}
	return flushing{peer: p, read: o, requests: requests}
}

// Orders reports whether the peer applies a request that this rank posts now behind all that it has
// posted or stored before. Otherwise a flush has to stand between.
func (p *Peer) Orders() bool {
	switch {
	case p.bind == nil:
		return true
	case p.line.waits.Load() || len(p.stripes.late()) > 0:
		return false
	}
	return p.bell == nil || p.flushed.Load() >= p.posts() // stores overtake requests
}

// posts returns how many requests this rank has posted to p. It takes no lock: a post of another
// goroutine that is under way may count or not.
func (p *Peer) posts() uint64 { return p.posted.Load() }

// raiseFlushed notes that the first upTo posts are applied.
func (p *Peer) raiseFlushed(upTo uint64) {
	for {
		old := p.flushed.Load()
		if old >= upTo || p.flushed.CompareAndSwap(old, upTo) {
			return
		}
	}
}

// Order has all later posts, and stores to mapped memory, take effect after all earlier ones.
func (p *Peer) Order() {
	atomics.AcquireRelease()
	p.mu.Lock()
	p.fence = true
	if p.line.waits.Load() { // ahead of posts, as in acknowledge
		p.orderAt.Store(unposted)
		p.orderPosted.Store(unposted)
	} else {
		p.orderAt.Store(p.requests.Load())
		p.orderPosted.Store(p.posts())
	}
	p.mu.Unlock()
}

// unposted stands for the number of posts ahead of an Order while composers in line have yet to post some.
const unposted = math.MaxUint64

// requestedAhead returns how many requests to p's CPU are ahead of the latest Order. While the composers that
// were in line then may not have posted all, it counts the later requests so far, too.
func (p *Peer) requestedAhead() uint64 {
	if at := p.orderAt.Load(); at != unposted {
		return at
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	requests := p.requests.Load()
	if p.orderAt.Load() == unposted && !p.line.waits.Load() {
		p.orderAt.Store(requests)
	}
	return min(p.orderAt.Load(), requests)
}
