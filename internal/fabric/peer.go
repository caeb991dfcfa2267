package fabric

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs"
)

// A Peer connects this rank to another. While mapping is on, this rank itself is a peer
// without a provider. A peer whose memory this rank maps gets a queue pair at the first post.
type Peer struct {
	f       *Fabric
	rank    int
	bind    *binding                 // nil: this rank itself
	qp      atomic.Pointer[verbs.QP] // nil: no post so far
	near    *verbs.Neighbor          // maps the peer's memory; nil: the queue pair does, if it can
	making  *opening                 // the attempt to make qp that counts; nil: none; under mu
	retry   wait.Pause               // behind the last shortage; under mu
	retryAt time.Time                // its end; under mu
	bell    wait.Ringer              // nil when the peer's memory cannot be mapped
	head    *Remote
	wanted  atomic.Pointer[wantedRegion] // until its first use
	fail    atomic.Pointer[RankError]

	mu          sync.Mutex // serializes posts
	short       short
	unsignaled  int           // posts since the last one that will complete
	fence       bool          // the next post starts after all reads and atomics
	posted      atomic.Uint64 // posts ever; stored under mu
	flushed     atomic.Uint64 // posts that are known to be applied
	requests    atomic.Uint64 // requests that this rank sent to the target's CPU
	responses   atomic.Uint64 // to these
	orderAt     atomic.Uint64 // requests to the CPU ahead of the latest Order; unposted: composers were in line
	orderPosted atomic.Uint64 // posts ahead of the latest Order; unposted: composers were in line
	mail        *mailbox
	line        line
	stripes     stripes

	Stats Counters
}

// Rank returns the peer's number in the world.
func (p *Peer) Rank() int { return p.rank }

// Provider returns the name of the provider that leads to the peer.
func (p *Peer) Provider() string {
	if p.bind == nil {
		return "self"
	}
	return p.bind.name
}

// Bell returns the bell of the peer, nil if this process does not map its memory.
func (p *Peer) Bell() wait.Ringer { return p.bell }

// Err returns the peer's error, nil while the peer is well.
func (p *Peer) Err() error {
	if e := p.fail.Load(); e != nil {
		return e
	}
	return nil
}

// These are the depths of a send queue between two ranks, unless the device takes less. A
// NIC pins memory for each request that a queue may hold, and puts its requests on the wire
// at once. Other devices gather small puts, so a deep queue has fewer waits for room.
const (
	sendDepth    = 1024
	nicSendDepth = 256
)

// sends is the depth of b's send queues.
func (b *binding) sends() int {
	if b.info.Memory.LocalKeys {
		return min(nicSendDepth, b.info.MaxQPDepth)
	}
	return min(sendDepth, b.info.MaxQPDepth)
}

// signalEvery bounds the unsignaled posts in a row: only a completion makes room in the
// queue again.
func (b *binding) signalEvery() int { return max(1, b.sends()/4) }

// receives is the depth of b's receive queues where it has mailboxes.
func (b *binding) receives() int { return min(mailboxDepth, b.info.MaxQPDepth) }

// newQP makes a queue pair, with a mailbox if it needs one. Without a mailbox the fabric posts
// sends under the mutex of the queue pair's peer only.
func (f *Fabric) newQP(ctx context.Context, b *binding, apart bool) (*verbs.QP, *mailbox, error) {
	receives := 0
	if f.listens(b) {
		receives = b.receives()
	}
	qp, err := b.pd.CreateQP(ctx, verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, SendDepth: b.sends(), RecvDepth: receives,
		MaxSegments: 1, MaxInline: b.inlineMax(), Apart: apart, Serial: !f.listens(b)})
	if err != nil {
		return nil, nil, err
	}
	mail, err := f.newMailbox(ctx, b, qp)
	if err != nil {
		return nil, nil, errors.Join(err, qp.Close())
	}
	b.qps.Add(1)
	return qp, mail, nil
}

// dropQP ends a queue pair and its mailbox.
func (f *Fabric) dropQP(b *binding, qp *verbs.QP, mail *mailbox) error {
	b.qps.Add(-1)
	return errors.Join(qp.Close(), mail.close())
}

// drop ends the connection of p. Its mutex keeps posts out.
func (p *Peer) drop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	qp := p.qp.Load()
	if qp == nil {
		return nil
	}
	return p.f.dropQP(p.bind, qp, p.mail)
}

// closePeers waits for the attempts to connect, which Close has canceled, and ends all
// connections.
func (f *Fabric) closePeers() error {
	f.making.Wait()
	f.peersMu.Lock()
	dials := slices.Collect(maps.Values(f.peers))
	inbound := slices.Collect(maps.Values(f.inbound))
	f.peersMu.Unlock()
	var errs []error
	for _, d := range dials {
		<-d.done
		if d.err == nil && d.peer.bind != nil {
			errs = append(errs, d.peer.drop())
			errs = append(errs, d.peer.dropStripes()...)
		}
	}
	f.listening.Wait()
	for _, in := range inbound {
		errs = append(errs, f.dropQP(in.bind, in.qp, in.mail))
	}
	return errors.Join(errs...)
}
