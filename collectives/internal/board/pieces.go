package board

import (
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/bulk"
)

// advance moves a piece along each edge on which it can, and reports whether it
// moved any.
func (e *Edges) advance() (moved bool, err error) {
	for i := range e.outs {
		if o := &e.outs[i]; !o.done() {
			did, err := e.send(o)
			if err != nil {
				return moved, err
			}
			moved = moved || did
		}
	}
	for i := range e.ins {
		if in := &e.ins[i]; in.edge < len(in.places) {
			did, err := e.take(in)
			if err != nil {
				return moved, err
			}
			moved = moved || did
		}
	}
	return moved, nil
}

// done reports whether this member has sent everything, and the peer has read all
// memory that this one leased.
func (o *outgoing) done() bool { return o.edge == len(o.places) && o.leased <= o.known }

// passed notes that n more bytes of a block were moved; of is the length of the block.
func (p *progress) passed(n, of int) {
	if p.at += n; p.at >= of {
		p.edge, p.at = p.edge+1, 0
	}
}

// send posts the next piece for a member, if the queue has room. Otherwise it checks whether the
// member has read the memory leased to it.
func (e *Edges) send(o *outgoing) (did bool, err error) {
	if o.edge == len(o.places) {
		did, err = o.took(o.leased)
	} else {
		did, err = e.put(o)
	}
	if did && o.done() {
		e.busy--
	}
	return did, err
}

// put posts the next piece for a member: a block that fits in a line, a chunk of a
// longer one, or the place of the block.
func (e *Edges) put(o *outgoing) (did bool, err error) {
	block, at := e.block(o.places[o.edge])
	lease := at.Region != 0 && e.view != nil && len(block) >= max(e.place, short+1)
	staged := len(block) > short && !lease
	if free, err := o.free(staged); !free {
		return false, err
	}
	l, k := o.line()
	n := len(block)
	switch {
	case lease:
		o.leased = k
		l.setPlace(at)
	case staged:
		l.setPlace(Place{})
		o.held[k%largeBuffers] = k
		n = bulk.Store(o.large[k%largeBuffers], e.piece(block, o.at))
	default:
		copy(l.data[8:], block)
	}
	o.post(l, e.seq, e.chain, len(block))
	o.passed(n, len(block))
	return true, nil
}

// take takes the next piece from a member, if it is there.
func (e *Edges) take(in *incoming) (did bool, err error) {
	l, err := in.next()
	if l == nil {
		return false, err
	}
	if l.chain != e.chain || l.seq != e.seq {
		return false, &Differs{Member: in.member, Seq: l.seq, Theirs: l.chain}
	}
	block := e.dst.block(in.places[in.edge])
	if says := binary.NativeEndian.Uint64(l.data[:]); says != uint64(len(block)) {
		return false, &LengthError{Member: in.member, Theirs: int(min(says, maxLength)), Mine: len(block)}
	}
	n := len(block)
	if n <= short {
		copy(block, l.data[8:])
	} else if n, err = e.fetch(in, l.place(), block); err != nil {
		return false, err
	}
	in.took(len(block) > short)
	in.passed(n, len(block))
	if in.edge == len(in.places) {
		e.busy--
	}
	return true, nil
}

// fetch copies the next piece of a block from its place, or from the large
// buffer, and returns its length.
func (e *Edges) fetch(in *incoming, at Place, block []byte) (int, error) {
	if at.Region == 0 {
		k := in.got + 1
		return copy(e.piece(block, in.at), in.large[k%largeBuffers]), nil
	}
	if e.view == nil || in.at > 0 {
		return 0, ErrCorrupt
	}
	mem := e.view(in.member, at.Region, at.Offset, len(block))
	if err := in.borrow(); err != nil {
		return 0, err
	}
	if len(mem) != len(block) {
		return 0, ErrCorrupt
	}
	bulk.Copy(block, mem, e.cached)
	return len(block), in.checkLease()
}

// piece returns the chunk of a block from a byte on: with short ones the peer
// begins early, and long ones cost fewer lines.
func (e *Edges) piece(block []byte, at int) []byte {
	size := min(max(len(block)/largeBuffers, e.pipe), e.pipeMost, e.large)
	return block[at:min(at+size, len(block))]
}

// setPlace stores a place in the line, behind the length of its block.
func (l *line) setPlace(p Place) {
	binary.NativeEndian.PutUint64(l.data[8:], p.Region)
	binary.NativeEndian.PutUint64(l.data[16:], p.Offset)
}

// place returns the place that setPlace stored.
func (l *line) place() Place {
	return Place{binary.NativeEndian.Uint64(l.data[8:]), binary.NativeEndian.Uint64(l.data[16:])}
}
