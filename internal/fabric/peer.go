package fabric

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A Peer connects this rank to another. While mapping is on, this rank itself is a peer
// without a queue pair.
type Peer struct {
	f      *Fabric
	rank   int
	bind   *binding
	qp     *verbs.QP
	bell   wait.Ringer // nil when the peer's memory cannot be mapped
	head   *Remote
	wanted atomic.Pointer[wantedRegion] // until its first use
	fail   atomic.Pointer[RankError]

	mu          sync.Mutex // serializes posts
	short       short
	unsignaled  int           // posts since the last one that will complete
	fence       bool          // the next post starts after all reads and atomics
	posted      uint64        // posts ever; see posts
	flushed     atomic.Uint64 // posts that are known to be applied
	asked       atomic.Uint64 // requests that this rank sent to the target's CPU
	answered    atomic.Uint64
	orderAt     atomic.Uint64 // requests to the CPU ahead of the latest Order
	orderPosted atomic.Uint64 // posts ahead of the latest Order
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

// A dial holds a connection that exists or that the fabric is making. Callers read it once
// done is closed.
type dial struct {
	done chan struct{}
	peer *Peer
	err  error
}

// A connectRequest has the target make the passive end of a connection. It also asks for the
// region that the origin connects for, if that is there.
type connectRequest struct {
	Provider string
	Stripe   int `json:",omitempty"`
	Address  []byte
	Want     string `json:",omitempty"` // name of the region
}

// A connectReply is the response to a request for a connection.
type connectReply struct {
	Address   []byte
	Head      regionReply
	Wanted    *regionReply `json:",omitempty"` // nil: not there yet
	Exhausted string       // in place of both, if the rank has no memory or descriptors left: the cause
}

// A wantedRegion is a region that came with the response to a connection.
type wantedRegion struct {
	name string
	at   regionReply
}

// Peer returns the connection to a rank. On first use the fabric makes the connection, on
// behalf of all callers. The attempt goes on when ctx ends. So it leaves no half of a
// connection at the rank, and the next caller finds it.
func (f *Fabric) Peer(ctx context.Context, rank int) (*Peer, error) { return f.PeerFor(ctx, rank, "") }

// PeerFor is Peer for a caller that will look for a region of the rank. If it makes the
// connection, the same call asks for the region.
func (f *Fabric) PeerFor(ctx context.Context, rank int, region string) (*Peer, error) {
	ctx = wait.Context(ctx)
	d, err := f.dial(rank, region)
	if err != nil {
		return nil, err
	}
	select {
	case <-d.done: // there already: ctx has no wait to end
		return d.peer, d.err
	default:
	}
	select {
	case <-d.done:
		return d.peer, d.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// dial returns the dial of a rank. It starts to make a connection for a region if there is none.
func (f *Fabric) dial(rank int, region string) (*dial, error) {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	if f.closed.Load() {
		return nil, ErrClosed
	}
	d := f.peers[rank]
	if d == nil {
		d = &dial{done: make(chan struct{})}
		f.peers[rank] = d
		f.making.Go(func() { f.makePeer(rank, region, d) })
	}
	return d, nil
}

// makePeer connects on behalf of all callers that wait for d. A failed attempt
// leaves the table, so that the next caller tries again.
func (f *Fabric) makePeer(rank int, region string, d *dial) {
	d.peer, d.err = f.connect(f.ctx, rank, region)
	f.peersMu.Lock()
	if d.err != nil {
		delete(f.peers, rank)
	}
	f.peersMu.Unlock()
	close(d.done)
}

// connect makes the peer of a rank. This rank itself needs no connection where it maps its own memory.
// An error of a connection becomes the error of the rank if the rank is known to be gone.
func (f *Fabric) connect(ctx context.Context, rank int, region string) (*Peer, error) {
	if gone := f.health.of(rank); gone != nil {
		return nil, gone
	}
	if rank == f.cfg.Rank && f.Mapping() && f.Coherent() {
		p := &Peer{f: f, rank: rank, bell: f.bell}
		f.health.watch(p)
		return p, nil
	}
	p, err := f.connectOneWay(ctx, rank, region)
	if err == nil {
		return p, nil
	}
	if errors.Is(err, driver.ErrLost) {
		return nil, f.blame(ctx, rank, err)
	}
	return nil, f.health.orElse(rank, err)
}

// connectOneWay tries the ways to a rank, one after the other. A way that has another one
// behind it must carry a request and its response. Neither a rank that is gone nor a
// shortage at one end makes it try the next way.
func (f *Fabric) connectOneWay(ctx context.Context, rank int, region string) (*Peer, error) {
	var errs []error
	ways := f.waysTo(rank)
	for i, b := range ways {
		last := i == len(ways)-1
		p, err := f.connectOver(ctx, rank, b, connectRequest{Want: region}, !last)
		if err == nil {
			f.health.watch(p)
			return p, nil
		}
		if mine := exhausted(f.cfg.Rank, err); mine != nil && !errors.As(err, new(*RankError)) {
			err = mine
		}
		err = fmt.Errorf("connect to rank %d over %s: %w", rank, b.name, err)
		errs = append(errs, err)
		if ctx.Err() != nil || errors.Is(err, driver.ErrExhausted) || f.health.of(rank) != nil {
			break
		}
		if f.cfg.Passed != nil && !last {
			f.cfg.Passed(rank, err)
		}
	}
	if len(ways) == 0 {
		return nil, fmt.Errorf("%w: no provider of this rank (%v) reaches rank %d", driver.ErrUnsupported, f.Providers(), rank)
	}
	return nil, errors.Join(errs...)
}

// connectOver connects to a rank over b, for the stripe or queue of a number in req or, if that
// is 0, for the peer itself. With verify, it also waits for the response to a request.
func (f *Fabric) connectOver(ctx context.Context, rank int, b *binding, req connectRequest, verify bool) (_ *Peer, err error) {
	qp, mail, err := f.newQP(ctx, b, req.Stripe > 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.dropQP(b, qp, mail))
		}
	}()
	req.Provider, req.Address = b.name, qp.Address()
	if b.info.Memory.Maps && f.Mapping() {
		req.Want = "" // it is in the peer's list
	}
	var rep connectReply
	if err := f.call(ctx, rank, "connect", req, &rep); err != nil {
		return nil, err
	}
	if rep.Exhausted != "" {
		return nil, &RankError{Rank: rank, Kind: driver.ErrExhausted, Cause: rep.Exhausted}
	}
	p := &Peer{f: f, rank: rank, bind: b, qp: qp, mail: mail}
	if rep.Wanted != nil {
		p.wanted.Store(&wantedRegion{req.Want, *rep.Wanted})
	}
	if err = f.join(ctx, p, &rep); err == nil && verify {
		err = p.verify(ctx)
	}
	if err != nil {
		// If this fails, the rank is gone, or its next connection replaces this one.
		_ = f.call(ctx, rank, "disconnect", disconnectRequest{req.Stripe}, &struct{}{})
		return nil, err
	}
	return p, nil
}

// join connects p's queue pair with the queue pair that the rank made for it.
func (f *Fabric) join(ctx context.Context, p *Peer, rep *connectReply) error {
	if err := p.qp.Connect(ctx, rep.Address, f.cfg.PeerTimeout); err != nil {
		return err
	}
	p.mail.open()
	head, err := f.remote(ctx, p, rep.Head)
	if err != nil {
		return err
	}
	p.head = head
	if bell, ok := p.qp.PeerBell(); ok && f.Mapping() {
		p.bell = bell
	}
	return nil
}

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

func (f *Fabric) dropQP(b *binding, qp *verbs.QP, mail *mailbox) error {
	b.qps.Add(-1)
	return errors.Join(qp.Close(), mail.close())
}

// drop ends the connection of p. Its mutex keeps posts out.
func (p *Peer) drop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.f.dropQP(p.bind, p.qp, p.mail)
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
		if d.err == nil && d.peer.qp != nil {
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
