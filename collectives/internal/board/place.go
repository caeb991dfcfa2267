package board

import (
	"cmp"
	"context"
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/bulk"
)

// usesPlaces reports whether a call on that many bytes begins by exchanging the
// places of buffers. More than two members do not up to quick bytes, where
// copying needs one wait: exchanging places and finishing takes two.
func (b *Board) usesPlaces(size, quick int) bool {
	return b.view != nil && size >= b.place && (b.n == 2 || size > quick)
}

// exchangePlaces posts the places of this member's input and output. It returns
// the turn in which all members did, or 0 if one has no input that all reach. A
// member without such an input knows the result and waits for no member.
func (b *Board) exchangePlaces(ctx context.Context, in, out Place) (uint64, error) {
	k := b.next()
	if err := b.postPlaces(ctx, k, in, out); err != nil {
		return 0, err
	}
	if in.Region == 0 {
		return 0, b.leave(ctx, k)
	}
	for m := range b.peers {
		l, err := b.see(ctx, m, k)
		if err != nil {
			return 0, err
		}
		if in, _ := l.places(); in.Region == 0 {
			return 0, b.leave(ctx, k)
		}
	}
	b.met(k)
	return k, nil
}

// postPlaces posts turn k with two places.
//
// It finds all boards first: if this member gives up, it must see the members that use the
// places (Board.uses).
func (b *Board) postPlaces(ctx context.Context, k uint64, in, out Place) error {
	if err := b.reachAll(ctx); err != nil {
		return err
	}
	l, err := b.line(ctx, k, forAll(k))
	if err != nil {
		return err
	}
	for i, v := range [...]uint64{in.Region, in.Offset, out.Region, out.Offset} {
		binary.NativeEndian.PutUint64(l.data[8*i:], v)
	}
	b.post(l, k, 0)
	return b.ring(ctx)
}

// places returns the two places that the line's data holds.
func (l *line) places() (in, out Place) {
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(l.data[8*i:]) }
	return Place{word(0), word(1)}, Place{word(2), word(3)}
}

// placesOf returns the places that a member posted in turn k.
func (b *Board) placesOf(m int, k uint64) (in, out Place) {
	return b.peers[m].lines[k%lines].places()
}

// at returns n bytes at a place of a member.
func (b *Board) at(m int, p Place, n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	mem := b.view(m, p.Region, p.Offset, n)
	if len(mem) == n {
		return mem, nil
	}
	return nil, cmp.Or(b.checkLease(m), ErrCorrupt) // an owner that gave up may have freed it
}

// copyTo copies src to dst unless they are the same.
func (b *Board) copyTo(dst, src []byte) {
	if len(src) > 0 && !same(dst, src) {
		bulk.Copy(dst[:len(src)], src, b.cached)
	}
}

// shift returns the place n bytes on, which a View may not have.
func (p Place) shift(n int) Place {
	if p.Region != 0 {
		p.Offset += uint64(n)
		if p.Offset < uint64(n) { // beyond all memory, not back at its beginning
			p.Offset = ^uint64(0)
		}
	}
	return p
}

// finish ends turn k, in which members used memory in place. It returns when all have
// done their part and each owns its memory again.
func (b *Board) finish(ctx context.Context, k uint64) error {
	if err := b.checkLease(allMembers); err != nil {
		return err
	}
	if err := b.leave(ctx, k); err != nil {
		return err
	}
	k = b.next()
	if err := b.put(ctx, k, forAll(k), nil); err != nil {
		return err
	}
	if err := b.meet(ctx, k); err != nil {
		return err
	}
	return b.leave(ctx, k)
}
