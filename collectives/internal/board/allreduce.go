package board

import "context"

// AllReduce gives every member the combination of all vectors.
func (b *Board) AllReduce(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	return b.end(b.allReduce(ctx, a))
}

// allReduce chooses by length: long vectors in place, each member a share; those of two members by a
// swap; short ones by the last member that comes; others by all members' shares on their boards.
func (b *Board) allReduce(ctx context.Context, a *Args) error {
	size := len(a.Send)
	if b.n == 1 {
		b.copyTo(a.Recv, a.Send)
		return nil
	}
	if b.usesPlaces(size, b.last) && size >= b.results {
		var in Place
		if a.RecvAt.Region != 0 {
			in = b.inPlace(a)
		}
		if k, err := b.exchangePlaces(ctx, in, a.RecvAt); k != 0 || err != nil {
			return b.reduceInPlace(ctx, a, k, allMembers, err)
		}
	}
	switch {
	case b.n == 2 && !(a.Single && size >= b.halves):
		return b.swap(ctx, a)
	case b.weight(a) <= b.last:
		return b.combineLast(ctx, a)
	}
	return b.shared(ctx, a, allMembers)
}

// weight returns the bytes of a reduction, which count more often if the operator combines single elements.
func (b *Board) weight(a *Args) int {
	if a.Single {
		return len(a.Send) * b.single
	}
	return len(a.Send)
}
