package collectives

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/rpipe"
)

// Members of a team that is freed close their pipes, and tell each other which they had
// opened: where a call has failed, one end may be there alone, and would wait for the
// other for ever.
const (
	openedIn  = 1 << 0
	openedOut = 1 << 1
)

// opened returns a byte for each member: which ends of pipes there are here.
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

// close closes all pipes. A writer waits for its reader, so all readers are closed first.
// Blocks that nobody read are of calls that have failed. When ctx ends the rest is left as
// it is: each end would try for a moment of its own.
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

// release gives back what pipes and landings have left, when all members have closed
// theirs. Cards are what they had opened.
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
