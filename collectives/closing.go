package collectives

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe"
)

// Members that free a team close their pipes, and tell each other which they had opened.
// After a failed call one end may exist alone: it must not wait for the missing end.
const (
	openedIn  = 1 << 0
	openedOut = 1 << 1
)

// opened returns a byte for each member: its bits name the ends of pipes at this member.
func (p *transport) opened() []byte {
	card := make([]byte, len(p.partners))
	for i := range p.partners {
		if p.partners[i].in != nil {
			card[i] |= openedIn
		}
		if p.partners[i].out != nil {
			card[i] |= openedOut
		}
	}
	return card
}

// close closes all pipes. A writer waits for its reader, so close takes all readers first.
// Blocks that no reader read belong to failed calls. When ctx ends, close leaves the
// remaining ends open: each would try for a moment of its own.
func (p *transport) close(ctx context.Context) error {
	for i := range p.partners {
		if in := p.partners[i].in; in != nil && ctx.Err() == nil {
			if err := in.Close(ctx); err != nil {
				return err
			}
		}
	}
	for i := range p.partners {
		if out := p.partners[i].out; out != nil && ctx.Err() == nil {
			if err := out.Close(ctx); err != nil && !errors.Is(err, rpipe.ErrClosed) {
				return err
			}
		}
	}
	return context.Cause(ctx)
}

// release frees what pipes and landings still hold, after all members have closed their
// ends. cards[i] holds the bytes that opened returned at member i.
func (p *transport) release(cards [][]byte) error {
	var errs []error
	for i := range p.partners {
		with, theirs := &p.partners[i], byte(0)
		if card := cards[i]; len(card) > p.Rank() {
			theirs = card[p.Rank()]
		}
		if with.in != nil && theirs&openedOut == 0 {
			with.in.Alone(fabric.Key{})
		}
		if with.out != nil && theirs&openedIn == 0 {
			with.out.Alone(fabric.Key{})
		}
		if with.landing != nil {
			errs = append(errs, with.landing.Close())
		}
	}
	p.partners, p.large = nil, nil
	return errors.Join(errs...)
}
