package fabric

import (
	"context"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A Landing takes one transfer of a peer straight into memory of this rank. This rank may
// take the memory back in the middle of the transfer.
type Landing = driver.Landing

// An Address names an open landing, as its owner tells the peer.
type Address = driver.RemoteAddr

// NewLanding makes a landing on the first device that has landings. Without one it returns
// driver.ErrUnsupported. Peers that write to the landing reach this rank over the same
// provider.
func (f *Fabric) NewLanding(ctx context.Context) (Landing, error) {
	for _, b := range f.bindings {
		if b.info.Memory.Landings {
			return b.ctx.NewLanding(ctx)
		}
	}
	return nil, driver.ErrUnsupported
}

// Lands reports whether this rank may write to a landing of p. Both ends come to the same
// result. They would not if there were a second provider: one end alone may fall back to it.
func (p *Peer) Lands() bool {
	ways := p.f.waysTo(p.rank)
	return len(ways) == 1 && ways[0] == p.bind && p.bind.info.Memory.Landings
}

// landTail is the number of bytes that the device takes over once all the rest is under
// way. To copy its share takes less time than to learn that the peer has it.
const landTail = 768 << 10

// Land returns the Put of src to a landing, and of the flag that tells of it. Its Request
// completes when the peer has almost all of src. If src is alone, not one of several
// pieces, the device copies as much of it as it can. This rank then does not wait.
func (r *Remote) Land(at Address, src []byte, flag Flag, alone bool) Put {
	over := r.Peer.bind.inlineMax()
	if !alone {
		over = min(over, landTail)
	}
	cut := max(0, len(src)-over)
	return Put{Landing: at, Head: Part{Mem: src[:cut], Path: Bulk}, Body: Part{At: cut, Mem: src[cut:], Path: Inline},
		Tell: TellByFlag, Flag: flag, Lent: true}
}
