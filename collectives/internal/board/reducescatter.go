package board

import "context"

// ReduceScatter gives every member its block of the combination of all vectors.
// The blocks' lengths may differ; every member knows all of them.
func (b *Board) ReduceScatter(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	return b.end(b.reduceScatter(ctx, a))
}

// reduceScatter has each member combine its own block: from the members' buffers in place if the blocks
// are long, else from their boards in pieces.
func (b *Board) reduceScatter(ctx context.Context, a *Args) error {
	blocks := &table{a.Send, len(a.Recv), a.RecvCounts, a.RecvOffsets}
	if b.n == 1 {
		b.copyTo(a.Recv, blocks.block(0))
		return nil
	}
	longest := blocks.longest(b.n)
	if b.usesPlaces(longest, b.portion) {
		if k, err := b.exchangePlaces(ctx, a.SendAt, Place{}); k != 0 || err != nil {
			return b.combineOwn(ctx, a, blocks, k, err)
		}
	}
	size := b.stride(longest, a.Elem)
	for c := range chunks(longest, size) {
		k := b.next()
		if err := b.spread(ctx, k, blocks, c, size); err != nil {
			return err
		}
		if err := b.meet(ctx, k); err != nil {
			return err
		}
		b.in[b.rank] = blocks.chunk(b.rank, c, size)
		if err := b.foldShare(a, k, cut(a.Recv, c, size), size); err != nil {
			return err
		}
		if err := b.leave(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// foldShare reduces this member's share to out. Its own operand is in b.in, and the others have put theirs in
// turn k.
func (b *Board) foldShare(a *Args, k uint64, out []byte, size int) error {
	for m := range b.peers {
		if m == b.rank {
			continue
		}
		theirs, err := b.mine(m, k, size)
		if err != nil {
			return err
		}
		b.in[m] = theirs[:len(out)]
	}
	b.fold(a, out, b.in, nil)
	return nil
}

// combineOwn combines this member's block of all vectors at the places that
// members posted in turn k.
func (b *Board) combineOwn(ctx context.Context, a *Args, blocks *table, k uint64, err error) error {
	if err != nil {
		return err
	}
	for m := range b.peers {
		in, _ := b.placesOf(m, k)
		if b.in[m], err = b.at(m, in.shift(blocks.offset(b.rank)), len(a.Recv)); err != nil {
			return err
		}
	}
	if err := b.borrow(allMembers, k); err != nil {
		return err
	}
	b.fold(a, a.Recv, b.in, nil)
	return b.finish(ctx, k)
}
