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

// NewLanding makes a landing on the first device that has such: driver.ErrUnsupported
// without one.
// Those who write to it reach this rank over the same provider.
func (f *Fabric) NewLanding(ctx context.Context) (Landing, error) {
	for _, b := range f.bindings {
		if b.info.Landings {
			return b.ctx.NewLanding(ctx)
		}
	}
	return nil, driver.ErrUnsupported
}

// Lands tells whether what is written to p may go to a landing of its. Both ends find
// the same: where there is another provider, one of them alone may have fallen back to it.
func (p *Peer) Lands() bool {
	ways := p.f.waysTo(p.rank)
	return len(ways) == 1 && ways[0] == p.bind && p.bind.info.Landings
}

// landTail is how much of a transfer the device takes over when all the rest is under
// way: what it must copy of that takes less time than to learn that the peer has it.
const landTail = 768 << 10

// StartLand writes src, of at most MaxMessage bytes, to a landing of r's rank, and then
// sets the flag. src belongs to the operation until the request's Wait, which takes
// until the peer has almost all of it. Where it is alone, not one of several pieces, the
// device takes over as much of it as it can, so that nobody waits.
func (r *Remote) StartLand(ctx context.Context, at Address, src []byte, flag Flag, alone bool) (req Request, err error) {
	b, over := r.Peer.bind, landTail
	if alone {
		over = len(src)
	}
	tail := max(0, len(src)-min(over, b.inlineMax()))
	if tail > 0 {
		o := b.ops.take(r)
		o.announced(0, Bulk, at, src[:tail]) // the flag says that it is there
		r.Peer.Stats.count(tail)
		if req, err = o.start(ctx, 1); err != nil {
			return req, err
		}
	}
	o := b.ops.take(r)
	o.copied(0, at.Add(uint64(tail)), src[tail:])
	n := 1 + o.flag(1, r.addr.Add(uint64(flag.Offset)), flag)
	r.Peer.Stats.count(len(src) - tail + 8)
	_, err = o.start(ctx, n)
	return req, err
}
