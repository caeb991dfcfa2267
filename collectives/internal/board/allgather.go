package board

import "context"

// AllGather gives every member all blocks. Their lengths may differ; every member
// knows all of them.
func (b *Board) AllGather(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	return b.end(b.allGather(ctx, a))
}

// allGather puts this member's block into Recv, and gets the others. Long blocks come from the members'
// buffers in place, if some lie in mapped memory. Else they come from the boards, in pieces.
func (b *Board) allGather(ctx context.Context, a *Args) error {
	blocks := a.recvTable(len(a.Send))
	b.copyTo(blocks.block(b.rank), a.Send)
	if b.n == 1 {
		return nil
	}
	longest := blocks.longest(b.n)
	if b.usesPlaces(longest, b.large) {
		in := a.SendAt
		if in.Region == 0 {
			in = a.RecvAt.shift(blocks.offset(b.rank))
		}
		if k, err := b.exchangePlaces(ctx, in, Place{}); k != 0 || err != nil {
			return b.pullAll(ctx, a, &blocks, k, err)
		}
	}
	return b.gatherPieces(ctx, a, &blocks, longest)
}

// gatherPieces gets the other members' blocks from their boards. All members know the length of the longest.
func (b *Board) gatherPieces(ctx context.Context, a *Args, blocks *table, longest int) error {
	size := fitting(longest, b.large, a.Elem)
	for c := range chunks(longest, size) {
		k := b.next()
		if err := b.put(ctx, k, forAll(k), cut(a.Send, c, size)); err != nil {
			return err
		}
		if err := b.meet(ctx, k); err != nil {
			return err
		}
		for m := range b.peers {
			if m == b.rank {
				continue
			}
			if err := b.copyGot(m, k, blocks.chunk(m, c, size)); err != nil {
				return err
			}
		}
		if err := b.leave(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// copyGot copies the data that member m has put in turn k. The two have met in that turn.
func (b *Board) copyGot(m int, k uint64, dst []byte) error {
	from, err := b.got(m, k, len(dst))
	if err != nil {
		return err
	}
	copy(dst, from)
	return nil
}

// pullAll copies all blocks from the places that members posted in turn k.
func (b *Board) pullAll(ctx context.Context, a *Args, blocks *table, k uint64, err error) error {
	if err != nil {
		return err
	}
	for i := 1; i < b.n; i++ {
		m := (b.rank + i) % b.n
		in, _ := b.placesOf(m, k)
		if b.in[m], err = b.at(m, in, blocks.len(m)); err != nil {
			return err
		}
	}
	return b.takeBlocks(ctx, blocks, k)
}
