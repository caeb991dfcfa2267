package fabric

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// An offer is a passive end that this rank makes before the other one requests it.
type offer struct {
	end   *inbound
	taken []byte // address of the queue pair that posts to it; nil: the other rank declined
}

// offer adds an offer to a request for a connection over b. A rank that lacks the resources leaves it out: the other rank
// then sends its own request, and gets that error.
func (f *Fabric) offer(ctx context.Context, rank int, b *binding, req *connectRequest) {
	back := &end{}
	if f.describe(back, b, rank, req.Want, 0) != nil {
		return
	}
	qp, mail, err := f.newQP(ctx, b, false)
	if err != nil {
		return
	}
	back.Address = qp.Address()
	req.Back, req.offer = back, &offer{end: &inbound{b, qp, mail}}
}

// endOffer connects the end of o with the queue pair that the other rank made for it. If this rank did not connect, or
// the other one declined, endOffer drops the end.
func (f *Fabric) endOffer(ctx context.Context, rank int, d *dial, o *offer, connected bool) {
	if o == nil {
		return
	}
	in, from := o.end, inboundKey{rank, 0}
	if o.taken == nil || !connected || !f.admitFirst(from, d, in) {
		_ = f.dropQP(in.bind, in.qp, in.mail) // no queue pair is connected to it
		return
	}
	mutant.Hesitate(mutant.Call)
	if err := in.qp.Connect(f.ctx, o.taken, f.cfg.PeerTimeout); err != nil {
		if f.expel(from, in) { // else a request of the other rank has replaced it
			// If this fails, the rank is gone, or its own connection replaces this one.
			_ = f.call(ctx, rank, "disconnect", disconnectRequest{Back: true}, &struct{}{})
		}
		return
	}
	in.mail.open()
	f.bell.Ring()
}

// admitFirst makes in the passive end of a rank's connection, unless that rank has connected alone, or tried to.
func (f *Fabric) admitFirst(from inboundKey, d *dial, in *inbound) bool {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	if f.inbound[from] != nil || d.alone {
		return false
	}
	f.inbound[from] = in
	return true
}

// expel drops in, and reports whether it still was the passive end of a rank's connection.
func (f *Fabric) expel(from inboundKey, in *inbound) bool {
	f.peersMu.Lock()
	mine := f.inbound[from] == in
	if mine {
		delete(f.inbound, from)
	}
	f.peersMu.Unlock()
	if mine {
		_ = f.dropQP(in.bind, in.qp, in.mail) // it was not connected
	}
	return mine
}

// accept makes a queue pair to the end that a request of a rank offers, and returns its address. It returns nil if there
// is no offer, or this rank connects by its own request.
func (f *Fabric) accept(from int, b *binding, req *connectRequest) []byte {
	d := f.take(from, b, req.Back != nil)
	if d == nil {
		return nil
	}
	p, err := f.acceptOver(from, b, req, d)
	if err == nil {
		return p.qp.Load().Address()
	}
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	f.connectAlone(from, d) // its caller gets the cause, if that lasts
	return nil
}

// take returns the dial of a rank, which now accepts an offer over b; nil if it declines. A dial that waits in vain
// connects by a request of this rank.
func (f *Fabric) take(from int, b *binding, offered bool) *dial {
	offered = offered && f.mutualWay(from) == b
	well := f.health.of(from) == nil
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	d := f.peers[from]
	switch {
	case d == nil && offered && well && !f.closed.Load():
		d = f.addDial(from)
		d.mutual = true
	case d == nil || d.turn == dialing:
		return nil
	case d.turn == accepting || !offered: // accepting: the rank sends a further request because one has failed
		d.mutual = offered
		f.connectAlone(from, d)
		return nil
	default:
		d.timer.Stop()
	}
	d.wait(f, from, accepting, acceptFactor)
	return d
}

// errAlone ends a queue pair for a dial that accepts no offer any more.
var errAlone = errors.New("this rank connects by its own request")

// acceptOver makes the peer for d, with a queue pair to the end that a request offers.
func (f *Fabric) acceptOver(from int, b *binding, req *connectRequest, d *dial) (*Peer, error) {
	qp, mail, err := f.newQP(f.ctx, b, false)
	if err != nil {
		return nil, err
	}
	p := &Peer{f: f, rank: from, bind: b, mail: mail}
	p.qp.Store(qp)
	if err := p.learn(f.ctx, req.Want, req.Back); err != nil {
		return nil, errors.Join(err, p.drop())
	}
	f.peersMu.Lock()
	accepting := d.turn == accepting
	if accepting {
		d.back = p
	}
	f.peersMu.Unlock()
	if !accepting {
		return nil, errors.Join(errAlone, p.drop())
	}
	mutant.Hesitate(mutant.Call)
	err = qp.ConnectWith(f.ctx, driver.Attr{Peer: req.Back.Address, Timeout: f.cfg.PeerTimeout,
		Established: func() { f.established(from, d, p) }})
	if err == nil {
		mail.open()
	}
	return p, err
}

// established ends d: p's queue pair and the passive end at the other rank are connected.
func (f *Fabric) established(rank int, d *dial, p *Peer) {
	mutant.Hesitate(mutant.Call)
	f.peersMu.Lock()
	mine := d.back == p
	if mine {
		d.peer = d.waitNoMore()
	}
	f.peersMu.Unlock()
	if mine {
		f.health.watch(p)
		f.endDial(rank, d)
	}
}

// disconnect drops the ends that a failed attempt of a rank left. That rank also drops what it made for an offer of this
// one, of which this rank may hear later.
func (f *Fabric) disconnect(from int, req disconnectRequest) {
	if req.Stripe == 0 {
		f.offerFailed(from, req.Back)
	}
	if !req.Back {
		f.admit(inboundKey{from, req.Stripe}, nil)
	}
}

// offerFailed ends the wait of a dial for what a rank offered. If the rank itself connected alone, in vain, it also has
// this rank's offer end with the request under way.
func (f *Fabric) offerFailed(from int, back bool) {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	switch d := f.peers[from]; {
	case d == nil:
	case d.turn == accepting:
		f.connectAlone(from, d)
	case d.turn == dialing && !back:
		d.alone = true
	}
}
