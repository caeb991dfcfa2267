package fabric

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// An inbound holds the passive end of a peer's connection to this rank.
type inbound struct {
	bind *binding
	qp   *verbs.QP
	mail *mailbox
}

// An inboundKey names the passive end of a connection by the rank that posts on the other
// end. A stripe has a number from 1 on, and a queue's connection one from MaxConnections on.
type inboundKey struct{ from, stripe int }

// serveConnect makes the passive end of a connection. If this rank has no memory or
// descriptors left, it tells the peer so.
func (f *Fabric) serveConnect(ctx context.Context, from int, req connectRequest) (connectReply, error) {
	rep, err := f.makePassive(ctx, from, req)
	if err != nil && req.Stripe == 0 {
		f.take(from, nil, false)
	}
	if mine := exhausted(f.cfg.Rank, err); mine != nil {
		return connectReply{Exhausted: mine.Cause}, nil //nolint:nilerr // the reply says it
	}
	return rep, err
}

// makePassive makes the passive end of a connection. The end is ready before the peer
// hears of it: some devices lose earlier messages. If the attempt fails, the peer gets the
// cause.
func (f *Fabric) makePassive(ctx context.Context, from int, req connectRequest) (connectReply, error) {
	b := f.binding(req.Provider)
	if b == nil {
		return connectReply{}, fmt.Errorf("%w: provider %q is not open at this rank", driver.ErrUnsupported, req.Provider)
	}
	if req.Stripe < 0 || req.Stripe >= MaxConnections+MaxQueues {
		return connectReply{}, fmt.Errorf("%w: connection %d of rank %d", driver.ErrInvalid, req.Stripe, from)
	}
	qp, mail, err := f.newQP(ctx, b, req.Stripe > 0)
	if err != nil {
		return connectReply{}, err
	}
	address := qp.Address()
	if err := qp.Connect(f.ctx, req.Address, f.cfg.PeerTimeout); err != nil {
		return connectReply{}, errors.Join(err, f.dropQP(b, qp, mail))
	}
	mail.open()
	f.admit(inboundKey{from, req.Stripe}, &inbound{b, qp, mail})
	f.bell.Ring()
	rep := connectReply{end: end{Address: address}}
	if err := f.describe(&rep.end, b, from, req.Want, req.Stripe); err != nil {
		return rep, err
	}
	if req.Stripe == 0 {
		rep.Back = f.accept(from, b, &req)
	}
	return rep, nil
}

// describe says in e where a rank finds this rank's head, and the region that it wants, if that is there.
func (f *Fabric) describe(e *end, b *binding, to int, want string, stripe int) (err error) {
	if e.Head, err = f.serveRegion(to, regionRequest{Provider: b.name, Name: headRegion}); err != nil {
		return err
	}
	if r := f.regions.find(want); r != nil {
		wanted, err := f.regionOver(b, r, to, regionRequest{Provider: b.name, Name: want, Stripe: stripe})
		if err == nil { // else the rank requests the region, and gets the error for it alone
			e.Wanted = &wanted
		}
	}
	return nil
}

// disconnectRequest has the target drop its ends of a failed attempt, or only what it made for Back.
type disconnectRequest struct {
	Stripe int
	Back   bool `json:",omitempty"`
}

// admit makes in the passive end of a rank's connection. If in is nil, it takes the end
// away. A rank has one connection of a number to this one: an earlier end belongs to a
// failed attempt.
func (f *Fabric) admit(from inboundKey, in *inbound) {
	f.peersMu.Lock()
	before := f.inbound[from]
	if delete(f.inbound, from); in != nil {
		f.inbound[from] = in
	}
	f.peersMu.Unlock()
	if before != nil {
		// An error means that the peer is stopped in the middle of a request.
		_ = f.dropQP(before.bind, before.qp, before.mail)
		f.regions.dropStages(from)
	}
}
