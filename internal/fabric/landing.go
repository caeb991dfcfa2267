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

// Landable is how much of a transfer to p may be posted at once: what the device would
// copy of it, if it cannot send all, takes little time beside the transfer itself.
func (p *Peer) Landable() int { return min(p.bind.inlineMax(), 256<<10) }

// Land writes src, no more than Landable, to a landing of p's, in order with all other
// writes to p. src is the caller's again when it returns, which waits for room in the
// queue at most: what does not leave at once is copied, so wait for Clear before. An
// error means that it was not posted; a failure later is the peer's error.
func (p *Peer) Land(ctx context.Context, at Address, src []byte) error {
	o := p.bind.ops.take(&p.head)
	o.copied(0, at, src)
	p.Stats.count(len(src))
	_, err := o.start(ctx, 1)
	return err
}

// Clear tells whether nothing posted to p waits to leave, or nothing ever will.
func (p *Peer) Clear() bool { return !p.qp.Backlogged() || p.fail.Load() != nil || p.f.closed.Load() }
