package board

import (
	"context"
	"encoding/binary"
)

// A root posts a list of the blocks in its buffer. The other members know only the length of
// their own block. listSize returns the bytes of a list of n blocks:
//
//	length, offset of the block for member 0, 1, ..., n-1 | longest length | place of the buffer
//
// The region of the place is 0 unless members use the blocks in place.
func listSize(n int) int { return 8 * (2*n + 3) }

// An entry holds the part of a list that concerns one member.
type entry struct {
	longest int
	at      Place // of the member's block
}

// list posts turn k with a list of blocks, and returns the longest length.
func (b *Board) list(ctx context.Context, k uint64, blocks *table, at Place) (longest int, err error) {
	if err := b.reachAll(ctx); err != nil { // as in postPlaces
		return 0, err
	}
	l, list, err := b.space(ctx, k, forAll(k), listSize(b.n))
	if err != nil {
		return 0, err
	}
	put := func(v uint64) {
		binary.NativeEndian.PutUint64(list, v)
		list = list[8:]
	}
	for m := range b.peers {
		put(uint64(blocks.len(m)))
		put(uint64(blocks.offset(m)))
	}
	longest = blocks.longest(b.n)
	put(uint64(longest))
	put(at.Region)
	put(at.Offset)
	b.post(l, k, listSize(b.n))
	return longest, nil
}

// look returns this member's entry in the list that a member posted in turn k.
// Its length must be the one that this member expects.
func (b *Board) look(m int, k uint64, mine int) (entry, error) {
	list, err := b.got(m, k, listSize(b.n))
	if err != nil {
		return entry{}, err
	}
	word := func(i int) uint64 { return binary.NativeEndian.Uint64(list[8*i:]) }
	theirs, offset, longest := word(2*b.rank), word(2*b.rank+1), word(2*b.n)
	at := Place{Region: word(2*b.n + 1), Offset: word(2*b.n+2) + offset}
	if theirs > longest || longest > maxLength || at.Offset < offset {
		return entry{}, ErrCorrupt
	}
	if int(theirs) != mine {
		return entry{}, &LengthError{Member: m, Theirs: int(theirs), Mine: mine}
	}
	return entry{int(longest), at}, nil
}

// maxLength is larger than any buffer.
const maxLength = 1 << 48

// rootLists has the root post a list of its blocks in turn k. Each other member compares the
// listed length of its block with mine. rootLists returns this member's entry. If members
// use the blocks in place, the caller leaves turn k once it has read its block. Else
// rootLists has left it.
func (b *Board) rootLists(ctx context.Context, root int, blocks *table, at Place, mine int) (k uint64, e entry, err error) {
	k = b.next()
	if b.rank == root {
		if longest := blocks.longest(b.n); b.usesPlaces(longest, 0) && longest >= b.direct {
			e.at = at
		}
		if e.longest, err = b.list(ctx, k, blocks, e.at); err == nil {
			err = b.ring(ctx)
		}
	} else if _, err = b.see(ctx, root, k); err == nil {
		e, err = b.look(root, k, mine)
	}
	if err == nil && e.at.Region == 0 {
		err = b.leave(ctx, k)
	}
	return k, e, err
}
