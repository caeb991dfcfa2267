package board

import "context"

// AllToAll gives every member a block of each member; all blocks have the same
// length.
func (b *Board) AllToAll(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	return b.end(b.allToAll(ctx, a))
}

// allToAll copies this member's own block, and gets the others: from the members' buffers in place if
// the blocks are long, else from their boards in pieces.
func (b *Board) allToAll(ctx context.Context, a *Args) error {
	each := len(a.Send) / b.n
	from, to := &table{buf: a.Send, each: each}, &table{buf: a.Recv, each: each}
	b.copyTo(to.block(b.rank), from.block(b.rank))
	if b.n == 1 {
		return nil
	}
	if b.usesPlaces(each, b.portion) {
		if k, err := b.exchangePlaces(ctx, a.SendAt, Place{}); k != 0 || err != nil {
			return b.pullOwn(ctx, to, k, err)
		}
	}
	return b.trade(ctx, a, from, to, each)
}

// trade posts chunks of the blocks for all other members side by side, and each
// member takes its own. The argument longest is the length of the longest block
// of all members.
func (b *Board) trade(ctx context.Context, a *Args, from, to *table, longest int) error {
	size := b.stride(longest, a.Elem)
	for c := range chunks(longest, size) {
		k := b.next()
		if err := b.spread(ctx, k, from, c, size); err != nil {
			return err
		}
		if err := b.meet(ctx, k); err != nil {
			return err
		}
		for i := 1; i < b.n; i++ {
			m := (b.rank + i) % b.n
			theirs, err := b.mine(m, k, size)
			if err != nil {
				return err
			}
			copy(to.chunk(m, c, size), theirs)
		}
		if err := b.leave(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// pullOwn copies this member's block from the place that each member posted in
// turn k.
func (b *Board) pullOwn(ctx context.Context, to *table, k uint64, err error) error {
	if err != nil {
		return err
	}
	for i := 1; i < b.n; i++ {
		m := (b.rank + i) % b.n
		in, _ := b.placesOf(m, k)
		if b.in[m], err = b.at(m, in.shift(b.rank*to.each), to.len(m)); err != nil {
			return err
		}
	}
	return b.takeBlocks(ctx, to, k)
}

// takeBlocks copies this member's blocks from the memory that the other members lent in
// turn k. Each member begins with the next one's, so that they do not all read the same
// memory at the same time.
func (b *Board) takeBlocks(ctx context.Context, to *table, k uint64) error {
	if err := b.borrow(allMembers, k); err != nil {
		return err
	}
	for i := 1; i < b.n; i++ {
		m := (b.rank + i) % b.n
		b.copyTo(to.block(m), b.in[m])
	}
	return b.finish(ctx, k)
}

// pullListed is pullOwn for lists.
func (b *Board) pullListed(ctx context.Context, to *table, k uint64) error {
	for i := 1; i < b.n; i++ {
		m := (b.rank + i) % b.n
		e, err := b.look(m, k, to.len(m))
		if err != nil {
			return err
		}
		if b.in[m], err = b.at(m, e.at, to.len(m)); err != nil {
			return err
		}
	}
	return b.takeBlocks(ctx, to, k)
}

// AllToAllV is AllToAll of blocks whose lengths only their two members know. All
// members first meet to learn the longest.
func (b *Board) AllToAllV(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	return b.end(b.allToAllV(ctx, a))
}

// allToAllV posts a list of this member's blocks, and compares the lists of all members with its
// own lengths. Then it gets its blocks as allToAll does.
func (b *Board) allToAllV(ctx context.Context, a *Args) error {
	from, to := a.sendTable(len(a.Send)/b.n), a.recvTable(len(a.Recv)/b.n)
	b.copyTo(to.block(b.rank), from.block(b.rank))
	if b.n == 1 {
		return nil
	}
	k := b.next()
	longest, err := b.list(ctx, k, &from, a.SendAt)
	if err != nil {
		return err
	}
	if err := b.meet(ctx, k); err != nil {
		return err
	}
	placed := true
	for m := range b.peers {
		e, err := b.look(m, k, to.len(m))
		if err != nil {
			return err
		}
		longest = max(longest, e.longest)
		placed = placed && e.at.Region != 0
	}
	if placed && b.usesPlaces(longest, b.portion) {
		return b.pullListed(ctx, &to, k)
	}
	if err := b.leave(ctx, k); err != nil {
		return err
	}
	return b.trade(ctx, a, &from, &to, longest)
}
