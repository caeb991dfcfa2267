package board

import "context"

// Broadcast gives every member the root's data. The root does not wait for the
// other members, unless they read its buffer in place.
func (b *Board) Broadcast(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	b.rootPosts = true
	return b.end(b.broadcast(ctx, a))
}

// broadcast has members read a long buffer of the root in place, and shorter data from the root's
// board.
func (b *Board) broadcast(ctx context.Context, a *Args) error {
	if b.n == 1 {
		return nil
	}
	if size := len(a.Recv); b.usesPlaces(size, 0) && size >= b.direct {
		if k, at, err := b.learn(ctx, a.Root, a.RecvAt); k != 0 || err != nil {
			return b.pull(ctx, a, k, at, a.Recv, err)
		}
	}
	return b.relay(ctx, a)
}

// relay streams the root's data in chunks through the root's large buffers. All other
// members copy each chunk to a.Recv.
func (b *Board) relay(ctx context.Context, a *Args) error {
	size := b.stream(len(a.Recv), a.Elem)
	for c := range chunks(len(a.Recv), size) {
		k := b.next()
		chunk := cut(a.Recv, c, size)
		if b.rank == a.Root {
			if err := b.put(ctx, k, forAll(k), chunk); err != nil {
				return err
			}
			if err := b.ring(ctx); err != nil {
				return err
			}
			b.ahead(k)
		} else {
			if _, err := b.see(ctx, a.Root, k); err != nil {
				return err
			}
			from, err := b.got(a.Root, k, len(chunk))
			if err != nil {
				return err
			}
			copy(chunk, from)
		}
		if err := b.leave(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// learn has the root post the place of its buffer, and returns that place at all members. It
// returns the turn of the post as well, or 0 if the other members cannot map the buffer.
func (b *Board) learn(ctx context.Context, root int, at Place) (uint64, Place, error) {
	k := b.next()
	if b.rank == root {
		if err := b.postPlaces(ctx, k, at, Place{}); err != nil {
			return 0, Place{}, err
		}
	} else {
		l, err := b.see(ctx, root, k)
		if err != nil {
			return 0, Place{}, err
		}
		at, _ = l.places()
	}
	if at.Region == 0 {
		return 0, Place{}, b.leave(ctx, k)
	}
	return k, at, nil
}

// pull has each other member copy the data from the place at, in the root's memory, to dst.
// The root waits until all members have copied. An error of the post ends it.
func (b *Board) pull(ctx context.Context, a *Args, k uint64, at Place, dst []byte, err error) error {
	if err != nil {
		return err
	}
	if b.rank == a.Root {
		if err := b.allLeft(ctx, k); err != nil {
			return err
		}
		return b.leave(ctx, k)
	}
	src, err := b.at(a.Root, at, len(dst))
	if err != nil {
		return err
	}
	if err := b.borrow(a.Root, k); err != nil {
		return err
	}
	b.copyTo(dst, src)
	if err := b.checkLease(a.Root); err != nil {
		return err
	}
	b.left = k
	return b.tell(ctx)
}
