package fabric

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A Landing is where one transfer of a peer's goes, straight into memory that this
// rank may take back in the middle of it.
type Landing = driver.Landing

// An Address is where an open landing is, as its owner tells the peer.
type Address = driver.RemoteAddr

// NewLanding makes a landing on the first device that has such; nil without one.
// Those who write to it reach this rank over the same provider.
func (f *Fabric) NewLanding(ctx context.Context) (Landing, error) {
	for _, b := range f.bindings {
		if b.info.Landings {
			return b.ctx.NewLanding(ctx)
		}
	}
	return nil, nil
}

// Lands tells whether what is written to p may go to a landing of its.
func (p *Peer) Lands() bool { return p.bind != nil && p.bind.info.Landings }

// Land writes src to a landing of p's, in order with all other writes to p. src is
// the caller's again when it returns, which waits for room in the queue only. An
// error means that not all of it was posted; a failure later is the peer's error.
func (p *Peer) Land(ctx context.Context, at Address, src []byte) error {
	for most := p.bind.inlineMax(); len(src) > 0; {
		piece := src[:min(len(src), most)]
		o := p.bind.ops.take(&p.head)
		o.copied(0, at, piece)
		p.Stats.count(len(piece))
		if _, err := o.start(ctx, 1); err != nil {
			return err
		}
		at, src = at.Add(uint64(len(piece))), src[len(piece):]
	}
	return nil
}
