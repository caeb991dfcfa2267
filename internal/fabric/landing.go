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
		if b.info.Memory.Landings {
			return b.ctx.NewLanding(ctx)
		}
	}
	return nil, driver.ErrUnsupported
}

// Lands tells whether what is written to p may go to a landing of its. Both ends find
// the same: where there is another provider, one of them alone may have fallen back to it.
func (p *Peer) Lands() bool {
	ways := p.f.waysTo(p.rank)
	return len(ways) == 1 && ways[0] == p.bind && p.bind.info.Memory.Landings
}

// landTail is how much of a transfer the device takes over when all the rest is under
// way: what it must copy of that takes less time than to learn that the peer has it.
const landTail = 768 << 10

// Land returns the Put of src to a landing, and of the flag that tells of it. Its Request is
// over when the peer has almost all of src. If src is alone, not one of several pieces, the
// device copies as much of it as it can, so that this rank does not wait.
func (r *Remote) Land(at Address, src []byte, flag Flag, alone bool) Put {
	over := r.Peer.bind.inlineMax()
	if !alone {
		over = min(over, landTail)
	}
	cut := max(0, len(src)-over)
	return Put{Landing: at, Head: Part{Mem: src[:cut], Path: Bulk}, Body: Part{At: cut, Mem: src[cut:], Path: Inline},
		Tell: TellByFlag, Flag: flag, Lent: true}
}
