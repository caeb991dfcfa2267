package board

import "context"

// swap has two members give each other their vectors; both combine them:
//
//	member 0   post a0 ──┐  ┌── see a1, a0∘a1
//	                      ╲╱
//	member 1   post a1 ───╱╲─── see a0, a0∘a1
//
// A small vector costs one trip of a cache line. Each member could combine one half and pass the
// result on: as many bytes would pass between the cores, with two waits in place of one. Chunks are
// posted a turn ahead. Of long vectors whose operator is called for each element, two members
// combine halves instead (tuning.halves).
func (b *Board) swap(ctx context.Context, a *Args) error {
	size := fitting(len(a.Send), b.large, a.Elem)
	n := chunks(len(a.Send), size)
	first := b.turn + 1
	if err := b.swapPut(ctx, cut(a.Send, 0, size)); err != nil {
		return err
	}
	for c := range n {
		k := first + uint64(c)
		if c+1 < n {
			if err := b.swapPut(ctx, cut(a.Send, c+1, size)); err != nil {
				return err
			}
		}
		b.expect(&b.peers[1-b.rank].lines[k%lines], k)
		if _, err := b.see(ctx, 1-b.rank, k); err != nil {
			return err
		}
		if c == 0 {
			b.met(k)
		} else {
			b.met(k - 1) // posted ahead: the peer may still be in the turn before
		}
		mine := cut(a.Send, c, size)
		theirs, err := b.got(1-b.rank, k, len(mine))
		if err != nil {
			return err
		}
		b.pair(a.Combine, cut(a.Recv, c, size), mine, theirs)
		if err := b.leave(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// swapPut posts a chunk for the other member, and rings its bell.
func (b *Board) swapPut(ctx context.Context, chunk []byte) error {
	k := b.next()
	if err := b.put(ctx, k, forAll(k), chunk); err != nil {
		return err
	}
	return b.ring(ctx)
}
