package collectives

import (
	"context"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// ExchangeAll sends all messages, and then receives. Each member has room for a few
// messages in flight, so a member waits only to receive. Members exchange long messages
// step by step: few enough are in flight for the caches. One member may do so while
// another does not: the order of messages between two members stays the same.
func (p *transport) ExchangeAll(ctx context.Context, b message.Batch) error {
	short := true
	for k := range b.Steps() {
		s := b.Step(k)
		if err := p.openFor(ctx, s.To, len(s.Src)); err != nil { // senders to this member wait for it
			return err
		}
		if err := p.openFor(ctx, s.From, len(s.Dst)); err != nil {
			return err
		}
		short = short && p.fits(s.To, len(s.Src), b.Most()) && p.fits(s.From, len(s.Dst), b.Most())
	}
	if !short {
		return message.ExchangeInTurns(ctx, p, &b)
	}
	for k := range b.Steps() {
		if s := b.Step(k); s.To != noMember {
			if err := p.Send(ctx, s.To, s.Src); err != nil {
				return err
			}
		}
	}
	for k := range b.Steps() {
		if s := b.Step(k); s.From != noMember {
			if err := p.Recv(ctx, s.From, s.Dst); err != nil {
				return err
			}
		}
	}
	return nil
}

// openFor opens the way to a member for a message of so many bytes, unless the sender
// sends nothing for it.
func (p *transport) openFor(ctx context.Context, member, bytes int) error {
	if p.nothing(member, bytes) {
		return nil
	}
	return p.open(ctx, member)
}

// fits reports whether a member has room for so many messages in flight, so that their
// sender does not wait for its receiver.
func (p *transport) fits(member, bytes, messages int) bool {
	lands := member != noMember && p.ends[member] != nil && p.ends[member].Lands(bytes)
	return !lands && max(1, (bytes+p.piece-1)/p.piece)*messages <= lead
}
