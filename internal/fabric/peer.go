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

// A Peer is a rank that this rank is connected to. The rank itself is a peer
// without a queue pair while mapping is on.
type Peer struct {
	f    *Fabric
	rank int
	bind *binding
	qp   *verbs.QP
	bell wait.Ringer // nil when the peer's memory cannot be mapped
	head Remote
	fail atomic.Pointer[RankError]

	mu         sync.Mutex // serialises posts
	unsignaled int        // posts since the last one that will complete
	fence      bool       // the next post starts after all reads and atomics
	posted     atomic.Uint64
	flushed    atomic.Uint64 // posts that are known to be applied
	asked      atomic.Uint64 // atomics that the target's CPU was asked for
	answered   atomic.Uint64
	orderAt    atomic.Uint64 // questions that the latest Order came behind
	mail       *mailbox

	Stats Counters
}

// Rank returns the peer's number in the world.
func (p *Peer) Rank() int { return p.rank }

// Provider names what carries operations to the peer.
func (p *Peer) Provider() string {
	if p.bind == nil {
		return "self"
	}
	return p.bind.name
}

// Bell returns what wakes the peer, nil when its memory cannot be mapped.
func (p *Peer) Bell() wait.Ringer { return p.bell }

// Err returns what became of the peer, nil while it is well.
func (p *Peer) Err() error {
	if e := p.fail.Load(); e != nil {
		return e
	}
	return nil
}

// Depth of the queues between two ranks.
const (
	sendDepth = 256
	// signalEvery bounds the unsignalled posts in a row: a queue's room comes
	// back only with a completion.
	signalEvery = sendDepth / 4
)

// dial is a connection that exists or is being made.
type dial struct {
	done chan struct{}
	peer *Peer
	err  error
}

// inbound is the passive end of a peer's connection to this rank.
type inbound struct {
	from int
	bind *binding
	qp   *verbs.QP
	mail *mailbox
}

type connectRequest struct {
	Provider string
	Address  []byte
}

type connectReply struct {
	Address []byte
	Head    regionReply
}

// Peer returns the connection to a rank, which it makes on first use.
func (f *Fabric) Peer(ctx context.Context, rank int) (*Peer, error) {
	for {
		f.peersMu.Lock()
		if f.closed.Load() {
			f.peersMu.Unlock()
			return nil, ErrClosed
		}
		d := f.peers[rank]
		if d == nil {
			d = &dial{done: make(chan struct{})}
			f.peers[rank] = d
			f.peersMu.Unlock()
			return f.makePeer(ctx, rank, d)
		}
		f.peersMu.Unlock()
		select {
		case <-d.done:
			if d.err == nil {
				return d.peer, nil
			}
			// The goroutine that dialled gave up, perhaps since its context
			// ended; this one tries for itself.
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// makePeer connects on behalf of everyone who waits for d. A failed attempt
// leaves the table, so that the next caller tries again.
func (f *Fabric) makePeer(ctx context.Context, rank int, d *dial) (*Peer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(f.ctx, func() { cancel(ErrClosed) })
	d.peer, d.err = f.connect(ctx, rank)
	stop()
	cancel(nil)
	f.peersMu.Lock()
	if d.err != nil {
		delete(f.peers, rank)
	}
	f.peersMu.Unlock()
	close(d.done)
	return d.peer, d.err
}

func (f *Fabric) connect(ctx context.Context, rank int) (*Peer, error) {
	if gone := f.health.of(rank); gone != nil {
		return nil, gone
	}
	if rank == f.cfg.Rank && f.Mapping() && f.Coherent() {
		p := &Peer{f: f, rank: rank, bell: f.bell}
		f.health.watch(p)
		return p, nil
	}
	var errs []error
	for _, b := range f.waysTo(rank) {
		p, err := f.connectOver(ctx, rank, b)
		if err == nil {
			return p, nil
		}
		errs = append(errs, fmt.Errorf("connect to rank %d over %s: %w", rank, b.name, err))
	}
	err := errors.Join(errs...)
	if errors.Is(err, driver.ErrLost) {
		return nil, f.blame(ctx, rank, err)
	}
	return nil, f.health.orElse(rank, err)
}

func (f *Fabric) connectOver(ctx context.Context, rank int, b *binding) (_ *Peer, err error) {
	qp, mail, err := f.newQP(ctx, b)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.dropQP(b, qp, mail))
		}
	}()
	var rep connectReply
	if err := f.call(ctx, rank, "connect", connectRequest{b.name, qp.Address()}, &rep); err != nil {
		return nil, err
	}
	if err := qp.Connect(ctx, rep.Address, f.cfg.PeerTimeout); err != nil {
		return nil, err
	}
	mail.open()
	p := &Peer{f: f, rank: rank, bind: b, qp: qp, mail: mail}
	head, err := f.remote(ctx, p, rep.Head)
	if err != nil {
		return nil, err
	}
	p.head = *head
	if bell, ok := qp.PeerBell(); ok && f.Mapping() {
		p.bell = bell
	}
	f.health.watch(p)
	return p, nil
}

// serveConnect makes the passive end of a connection. It answers before it is
// connected, since the peer needs the address to come.
func (f *Fabric) serveConnect(ctx context.Context, from int, req connectRequest) (connectReply, error) {
	b := f.binding(req.Provider)
	if b == nil {
		return connectReply{}, fmt.Errorf("%w: provider %q is not open at this rank", driver.ErrUnsupported, req.Provider)
	}
	qp, mail, err := f.newQP(ctx, b)
	if err != nil {
		return connectReply{}, err
	}
	address := qp.Address()
	if err := f.admit(&inbound{from, b, qp, mail}, req.Address); err != nil {
		return connectReply{}, errors.Join(err, f.dropQP(b, qp, mail))
	}
	head, err := f.serveRegion(from, regionRequest{Provider: req.Provider, Name: headRegion})
	return connectReply{Address: address, Head: head}, err
}

// admit connects an incoming queue pair: in the background, unless it has a
// mailbox. Such devices lose what comes before they are connected, and the peer
// would send it again only after seconds.
func (f *Fabric) admit(in *inbound, peer []byte) error {
	connect := func() error {
		err := in.qp.Connect(f.ctx, peer, f.cfg.PeerTimeout)
		if err == nil {
			in.mail.open()
		}
		f.bell.Ring()
		return err
	}
	if in.mail != nil {
		if err := connect(); err != nil {
			return err
		}
	}
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	if f.closed.Load() {
		return ErrClosed
	}
	f.inbound = append(f.inbound, in)
	if in.mail == nil {
		// A failure here is one at the peer as well, which reports it.
		f.admitting.Go(func() { _ = connect() })
	}
	return nil
}

// newQP makes a queue pair, with a mailbox if it needs one.
func (f *Fabric) newQP(ctx context.Context, b *binding) (*verbs.QP, *mailbox, error) {
	receives := 0
	if f.listens(b) {
		receives = mailboxDepth
	}
	qp, err := b.pd.CreateQP(ctx, verbs.QPConfig{SendCQ: b.cq, RecvCQ: b.cq, SendDepth: sendDepth, RecvDepth: receives,
		MaxSegments: 1, MaxInline: b.inlineMax()})
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

// closePeers waits for the connections that are being made, which Close has
// cancelled, and ends all.
func (f *Fabric) closePeers() error {
	f.making.Wait()
	f.peersMu.Lock()
	dials := slices.Collect(maps.Values(f.peers))
	inbound := f.inbound
	f.peersMu.Unlock()
	var errs []error
	for _, d := range dials {
		<-d.done
		if d.err == nil && d.peer.qp != nil {
			errs = append(errs, f.dropQP(d.peer.bind, d.peer.qp, d.peer.mail))
		}
	}
	f.admitting.Wait()
	for _, in := range inbound {
		errs = append(errs, f.dropQP(in.bind, in.qp, in.mail))
	}
	return errors.Join(errs...)
}
