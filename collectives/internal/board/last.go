package board

import (
	"context"

	"github.com/gopgas/gopgas/internal/bulk"
)

// combineLast has more than two members post their vectors and count themselves.
// The last one to come, or member 0 of a larger team, combines all vectors and releases
// the rest with the result:
//
//	members  0  1  2  3
//	         │  │  │  │   post, count
//	         └──┴──┼──┘
//	               2      the last: a0∘a1∘a2∘a3
//	         ┌──┬──┼──┐
//	         0  1  2  3   read
//
// Each member makes one atomic addition and one wait, as in a barrier that counts in one place.
// (See Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization on Shared-Memory
// Multiprocessors", 1991.) The result lies on the release line, or in the buffer of the member that
// combined.
func (b *Board) combineLast(ctx context.Context, a *Args) error {
	k := b.next()
	h := forAll(k)
	if b.n > b.lastOpens { // member 0 opens
		h.pacer = firstMember
		if err := b.pace(ctx, k); err != nil {
			return err
		}
	}
	if err := b.put(ctx, k, h, a.Send); err != nil {
		return err
	}
	opens, err := b.arrive(ctx)
	if err != nil {
		return err
	}
	if opens {
		return b.combineForAll(ctx, a, k)
	}
	if err := b.pass(ctx, k); err != nil {
		return err
	}
	result := b.peers[0].release.data[:]
	if len(a.Recv) > inline {
		writer, err := b.writer(ctx)
		if err != nil {
			return err
		}
		if result, err = b.got(writer, k, len(a.Recv)); err != nil {
			return err
		}
	}
	copy(a.Recv, result)
	return b.leave(ctx, k)
}

// combineForAll is the part of the member that opens the gate.
func (b *Board) combineForAll(ctx context.Context, a *Args, k uint64) error {
	if err := b.checkAll(ctx, k); err != nil {
		return err
	}
	if err := b.operands(k, a.Send); err != nil {
		return err
	}
	b.fold(a, a.Recv, b.in, nil)
	if len(a.Recv) > inline {
		mine, err := b.got(b.rank, k, len(a.Recv))
		if err != nil {
			return err
		}
		bulk.Store(mine, a.Recv)
		b.postWriter()
	} else {
		copy(b.peers[0].release.data[:], a.Recv)
	}
	if err := b.open(ctx, k); err != nil {
		return err
	}
	return b.leave(ctx, k)
}
