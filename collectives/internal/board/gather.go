package board

import "context"

// Gather gives the root all blocks, which have the same length. Only the root waits, unless
// members write long blocks in place into its buffer. For that they wait until the root has
// come, even if its buffer turns out to be a slice of its own.
func (b *Board) Gather(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	return b.end(b.gather(ctx, a))
}

// gather has members store long blocks in the root's buffer, and hand shorter ones over by their
// boards.
func (b *Board) gather(ctx context.Context, a *Args) error {
	size := len(a.Send)
	blocks := &table{buf: a.Recv, each: size}
	if b.rank == a.Root {
		b.copyTo(blocks.block(b.rank), a.Send)
	}
	if b.n == 1 {
		return nil
	}
	if b.usesPlaces(size, 0) && size >= b.direct {
		if k, at, err := b.learn(ctx, a.Root, a.RecvAt); k != 0 || err != nil {
			return b.push(ctx, a, k, at.shift(b.rank*size), err)
		}
	}
	return b.collect(ctx, a, blocks, size)
}

// collect streams the blocks, the longest of which has a given size, to the root.
func (b *Board) collect(ctx context.Context, a *Args, blocks *table, longest int) error {
	size := b.stream(longest, a.Elem)
	for c := range chunks(longest, size) {
		if c > 0 && ctx.Err() != nil { // the root determines longest
			return context.Cause(ctx)
		}
		k := b.next()
		if b.rank == a.Root {
			if err := b.seeAll(ctx, k); err != nil {
				return err
			}
			for m := range b.peers {
				if chunk := blocks.chunk(m, c, size); m != b.rank {
					from, err := b.got(m, k, len(chunk))
					if err != nil {
						return err
					}
					copy(chunk, from)
				}
			}
		} else {
			if err := b.put(ctx, k, forRoot(k, a.Root), cut(a.Send, c, size)); err != nil {
				return err
			}
			if err := b.ringAt(ctx, a.Root); err != nil {
				return err
			}
			b.ahead(k)
		}
		if err := b.leave(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// push has all other members write their blocks to their places in the root's
// memory. The root posted these in turn k, and waits for the members.
func (b *Board) push(ctx context.Context, a *Args, k uint64, at Place, err error) error {
	if err != nil {
		return err
	}
	if b.rank != a.Root {
		dst, err := b.at(a.Root, at, len(a.Send))
		if err != nil {
			return err
		}
		if err := b.borrow(a.Root, k); err != nil {
			return err
		}
		copy(dst, a.Send)
	}
	if err := b.leave(ctx, k); err != nil {
		return err
	}
	k = b.next()
	if b.rank == a.Root {
		if err := b.seeAll(ctx, k); err != nil {
			return err
		}
	} else {
		if err := b.put(ctx, k, forRoot(k, a.Root), nil); err != nil {
			return err
		}
		if err := b.ringAt(ctx, a.Root); err != nil {
			return err
		}
	}
	return b.leave(ctx, k)
}

// GatherV is Gather of blocks whose lengths the root alone knows, so that the
// other members wait for its list.
func (b *Board) GatherV(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	return b.end(b.gatherV(ctx, a))
}

// gatherV is gather with blocks of different lengths, which the root lists on its board.
func (b *Board) gatherV(ctx context.Context, a *Args) error {
	blocks := a.recvTable(len(a.Send))
	if b.rank == a.Root {
		b.copyTo(blocks.block(b.rank), a.Send)
	}
	if b.n == 1 {
		return nil
	}
	k, e, err := b.rootLists(ctx, a.Root, &blocks, a.RecvAt, len(a.Send))
	if err != nil || e.at.Region != 0 {
		return b.push(ctx, a, k, e.at, err)
	}
	return b.collect(ctx, a, &blocks, e.longest)
}
