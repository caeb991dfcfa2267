package board

import "context"

// Reduce gives the root the combination of all vectors.
func (b *Board) Reduce(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	return b.end(b.reduce(ctx, a))
}

// reduce chooses by length: long vectors in place, each member a share; short ones, and those of two
// members, by the root alone; others by all members' shares on their boards.
func (b *Board) reduce(ctx context.Context, a *Args) error {
	size := len(a.Send)
	if b.n == 1 {
		b.copyTo(a.Recv, a.Send)
		return nil
	}
	if b.usesPlaces(size, b.alone) && size >= b.direct {
		in, out := a.SendAt, Place{}
		if b.rank == a.Root {
			in, out = Place{}, a.RecvAt
			if out.Region != 0 {
				in = b.inPlace(a)
			}
		}
		if k, err := b.exchangePlaces(ctx, in, out); k != 0 || err != nil {
			return b.reduceInPlace(ctx, a, k, a.Root, err)
		}
	}
	if b.n == 2 || b.weight(a) <= b.alone {
		return b.reduceAlone(ctx, a)
	}
	return b.shared(ctx, a, a.Root)
}

// reduceAlone streams all vectors to the root, which combines them alone; only
// the root waits.
func (b *Board) reduceAlone(ctx context.Context, a *Args) error {
	size := b.stream(len(a.Send), a.Elem)
	for c := range chunks(len(a.Send), size) {
		k := b.next()
		mine := cut(a.Send, c, size)
		if b.rank != a.Root {
			if err := b.put(ctx, k, forRoot(k, a.Root), mine); err != nil {
				return err
			}
			if err := b.ringAt(ctx, a.Root); err != nil {
				return err
			}
			b.ahead(k)
			if err := b.leave(ctx, k); err != nil {
				return err
			}
			continue
		}
		if err := b.seeAll(ctx, k); err != nil {
			return err
		}
		if err := b.operands(k, mine); err != nil {
			return err
		}
		b.fold(a, cut(a.Recv, c, size), b.in, nil)
		if err := b.leave(ctx, k); err != nil {
			return err
		}
	}
	return nil
}
