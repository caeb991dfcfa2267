package collectives

import (
	"context"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// ExchangeAll sends all, and then takes what comes: there is room for a few messages on
// their way to each member, so that nobody waits but for what comes. Long ones are exchanged
// step by step, since those on their way should be few enough for caches.
// Who does so need not be everyone: to each member it is the same in what order messages
// go between others.
func (p *transport) ExchangeAll(ctx context.Context, b message.Batch) error {
	short := true
	for k := range b.Steps() {
		s := b.Step(k)
		if err := p.meet(ctx, s.To, len(s.Src)); err != nil { // those who send to this one wait for it
			return err
		}
		if err := p.meet(ctx, s.From, len(s.Dst)); err != nil {
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

// meet makes ready for a member that a message of so many bytes goes to, or comes
// from.
func (p *transport) meet(ctx context.Context, member, bytes int) error {
	if p.nothing(member, bytes) {
		return nil
	}
	return p.open(ctx, member)
}

// fits tells whether there is room for so many messages on their way to a member, which
// do not wait for who receives them.
func (p *transport) fits(member, bytes, messages int) bool {
	blocks := p.cut(bytes)
	long := member != noMember && p.partners[member].lands && blocks >= longFrom
	return !long && blocks*messages <= lead
}
