package fabric

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A dial holds a connection that exists or that the fabric is making. Callers read it once
// done is closed.
type dial struct {
	done chan struct{}
	peer *Peer
	err  error
	expectation
}

// connected reports whether the connection exists.
func (d *dial) connected() bool {
	select {
	case <-d.done:
		return d.err == nil
	default:
		return false
	}
}

// A connectRequest has the target make the passive end of a connection. It also requests the
// region that the origin connects for, if that is there.
type connectRequest struct {
	Provider string
	Stripe   int `json:",omitempty"`
	Address  []byte
	Want     string `json:",omitempty"` // name of the region
	Back     *end   `json:",omitempty"` // for the target's own connection to the origin
	offer    *offer // the origin's record of Back
}

// A connectReply is the response to a request for a connection.
type connectReply struct {
	end
	Back      []byte `json:",omitempty"` // address of the queue pair for the end in the request; nil: none
	Exhausted string // in place of all, if the rank has no memory or descriptors left: the cause
}

// An end holds what a rank tells the other one about the passive end of that one's connection.
type end struct {
	Address []byte
	Head    regionReply
	Wanted  *regionReply `json:",omitempty"` // nil: not there yet
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
// connection, the same call requests the region. If this rank expects the other one to connect both, for another
// region, it connects at once.
func (f *Fabric) PeerFor(ctx context.Context, rank int, region string) (*Peer, error) {
	ctx = wait.Context(ctx)
	d, err := f.dial(rank, region, false)
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

// dial returns the dial of a rank. If there is none, it connects at once where that takes no
// message. Otherwise it has a goroutine connect for a region, or expects the other rank to connect both.
func (f *Fabric) dial(rank int, region string, mutual bool) (*dial, error) {
	well := f.health.of(rank) == nil
	d, made, err := f.newDial(rank, region, mutual && well)
	if !made {
		return d, err
	}
	if well {
		if d.peer, d.err = f.connectNear(rank); d.peer != nil {
			f.health.watch(d.peer)
		}
	}
	if d.peer == nil && d.err == nil {
		go f.attempt(rank, d, nil)
	} else {
		f.endDial(rank, d)
	}
	return d, nil
}

// newDial returns the dial of a rank, and whether the caller has to connect. Each dial that is made has an endDial.
func (f *Fabric) newDial(rank int, region string, mutual bool) (d *dial, made bool, err error) {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	if f.closed.Load() {
		return nil, false, ErrClosed
	}
	if d := f.peers[rank]; d != nil {
		switch {
		case d.turn == expecting && !mutual && d.region != region:
			f.connectAlone(rank, d) // the other rank need not come for this call
		case d.turn == accepting && d.region == "":
			d.region = region // the dial may end as one of this rank
		}
		return d, false, nil
	}
	d = f.addDial(rank)
	d.region, d.mutual = region, mutual && f.mayExpect(rank)
	if d.mutual && rank < f.cfg.Rank {
		d.wait(f, rank, expecting, 1)
	}
	return d, d.turn == dialing, nil
}

// addDial makes a dial. The caller holds peersMu, and the fabric is not closed.
func (f *Fabric) addDial(rank int) *dial {
	d := &dial{done: make(chan struct{})}
	f.peers[rank] = d
	f.making.Add(1)
	return d
}

// endDial hands the result in d to all callers that wait for it. A failed attempt
// leaves the table, so that the next caller tries again.
func (f *Fabric) endDial(rank int, d *dial) {
	f.peersMu.Lock()
	if d.err != nil {
		delete(f.peers, rank)
	}
	f.peersMu.Unlock()
	close(d.done)
	f.making.Done()
}

// attempt connects for the callers of d, by a request of this rank. back is the peer that it made for an offer of the other
// rank, nil if there is none. The request has that rank drop its end, and only then attempt drops back: that rank would
// take a lost connection for the loss of this one.
func (f *Fabric) attempt(rank int, d *dial, back *Peer) {
	mutant.Hesitate(mutant.Call)
	d.peer, d.err = f.connect(f.ctx, rank, d)
	if back != nil {
		if d.err != nil && f.health.of(rank) == nil {
			_ = f.call(f.ctx, rank, "disconnect", disconnectRequest{}, &struct{}{}) // if this fails, the rank is gone
		}
		_ = back.drop() // it has no posts
	}
	f.endDial(rank, d)
}

// connect makes the peer of a rank. This rank itself needs no connection where it maps its own memory.
// An error of a connection becomes the error of the rank if the rank is known to be gone.
func (f *Fabric) connect(ctx context.Context, rank int, d *dial) (*Peer, error) {
	if gone := f.health.of(rank); gone != nil {
		return nil, gone
	}
	if rank == f.cfg.Rank && f.Mapping() && f.Coherent() {
		p := &Peer{f: f, rank: rank, bell: f.bell}
		f.health.watch(p)
		return p, nil
	}
	p, err := f.connectOneWay(ctx, rank, d)
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
func (f *Fabric) connectOneWay(ctx context.Context, rank int, d *dial) (*Peer, error) {
	var errs []error
	ways := f.waysTo(rank)
	for i, b := range ways {
		last := i == len(ways)-1
		req := connectRequest{Want: d.region}
		if d.mutual && i == 0 {
			f.offer(ctx, rank, b, &req)
		}
		p, err := f.connectOver(ctx, rank, b, req, !last)
		f.endOffer(ctx, rank, d, req.offer, err == nil)
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

// connectOver connects to a rank over b, for the stripe or queue of a number in req. 0 stands
// for the peer itself. With verify, it also waits for the response to a request.
func (f *Fabric) connectOver(ctx context.Context, rank int, b *binding, req connectRequest, verify bool) (*Peer, error) {
	p := &Peer{f: f, rank: rank, bind: b}
	if b.info.Memory.Maps && f.Mapping() {
		req.Want = "" // it is in the peer's list
	}
	err := p.connectQP(ctx, req, func(rep *connectReply) error {
		if req.offer != nil {
			req.offer.taken = rep.Back
		}
		if err := p.learn(ctx, req.Want, &rep.end); err != nil {
			return err
		}
		if bell, ok := p.qp.Load().PeerBell(); ok && f.Mapping() {
			p.bell = bell
		}
		if verify {
			return p.verify(ctx)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// learn takes what the rank of p says about its end and a region of a name.
func (p *Peer) learn(ctx context.Context, name string, there *end) (err error) {
	if there.Wanted != nil {
		p.wanted.Store(&wantedRegion{name, *there.Wanted})
	}
	p.head, err = p.f.remote(ctx, p, there.Head)
	return err
}

// connectQP makes the queue pair of p and has the rank make the passive end. It then calls join.
// If that fails, neither end stays.
func (p *Peer) connectQP(ctx context.Context, req connectRequest, join func(*connectReply) error) (err error) {
	f := p.f
	qp, mail, err := f.newQP(ctx, p.bind, req.Stripe > 0)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.dropQP(p.bind, qp, mail))
		}
	}()
	req.Provider, req.Address = p.bind.name, qp.Address()
	var rep connectReply
	if err := f.call(ctx, p.rank, "connect", req, &rep); err != nil {
		return err
	}
	if rep.Exhausted != "" {
		return &RankError{Rank: p.rank, Kind: driver.ErrExhausted, Cause: rep.Exhausted}
	}
	if err = qp.Connect(ctx, rep.Address, f.cfg.PeerTimeout); err == nil {
		if mail != nil {
			p.mail = mail
		}
		p.qp.Store(qp)
		mail.open()
		err = join(&rep)
	}
	if err != nil {
		// If this fails, the rank is gone, or its next connection replaces this one.
		_ = f.call(ctx, p.rank, "disconnect", disconnectRequest{Stripe: req.Stripe}, &struct{}{})
	}
	return err
}
