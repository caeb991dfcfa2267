package board

import (
	"context"

	"github.com/gopgas/gopgas/internal/bulk"
)

// shared reduces vectors of any length. Each member combines its share of every
// chunk, and the root, or every member, takes the shares together:
//
//	turn      0        1        2        3        4
//	chunk 0   copy in  combine  copy out
//	chunk 1            copy in  combine  copy out
//	chunk 2                     copy in  combine  copy out
//	               gate     gate     gate     gate
//
// A reduce-scatter and a gather (Rabenseifner, "Optimization of Collective
// Reduction Operations", 2004) in memory, with one gate for each chunk and one
// more. The result of a share takes the place of the member's own operand.
func (b *Board) shared(ctx context.Context, a *Args, root int) error {
	size := whole(b.large, a.Elem)
	n := chunks(len(a.Send), size)
	takes := root == allMembers || root == b.rank
	first := b.turn + 1
	for t := range n + 2 {
		k := b.next()
		l, space, err := b.space(ctx, k, forAll(k+2), len(cut(a.Send, t, size)))
		if err != nil {
			return err
		}
		bulk.Store(space, cut(a.Send, t, size))
		if t > 0 && t <= n {
			if err := b.combineShare(a, first+uint64(t-1), len(cut(a.Send, t-1, size))); err != nil {
				return err
			}
		}
		if t > 1 && takes {
			if err := b.takeShares(a, first+uint64(t-2), cut(a.Recv, t-2, size)); err != nil {
				return err
			}
		}
		if t <= n {
			b.post(l, k, len(cut(a.Send, t, size)))
			if err := b.meet(ctx, k); err != nil {
				return err
			}
		}
		if err := b.leave(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// combineShare combines this member's share of the chunk of turn k.
func (b *Board) combineShare(a *Args, k uint64, size int) error {
	from, to := b.share(size, a.Elem, b.rank)
	for m := range b.peers {
		theirs, err := b.got(m, k, size)
		if err != nil {
			return err
		}
		b.in[m] = theirs[from:to]
	}
	b.fold(a, b.in[b.rank], b.in, nil)
	return nil
}

// takeShares copies all members' shares of the chunk of turn k to their places.
func (b *Board) takeShares(a *Args, k uint64, dst []byte) error {
	for m := range b.peers {
		from, to := b.share(len(dst), a.Elem, m)
		theirs, err := b.got(m, k, len(dst))
		if err != nil {
			return err
		}
		copy(dst[from:to], theirs[from:to])
	}
	return nil
}
