package board

import (
	"context"

	"github.com/gopgas/gopgas/internal/bulk"
)

// combineLast has more than two members post their vectors and count themselves.
// The last one to come combines all vectors and releases the rest with the
// result:
//
//	members  0  1  2  3
//	         │  │  │  │   post, count
//	         └──┴──┼──┘
//	               2      the last: a0∘a1∘a2∘a3
//	         ┌──┬──┼──┐
//	         0  1  2  3   read
//
// One atomic addition and one wait for each, as in the barrier that counts in one
// place (Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization on
// Shared-Memory Multiprocessors", 1991). The result lies on the release line, or
// in the large buffer of the last member.
func (b *Board) combineLast(ctx context.Context, a *Args) error {
	k := b.next()
	if err := b.put(ctx, k, hold{k, allMembers}, a.Send); err != nil {
		return err
	}
	if b.arrive() {
		return b.combineForAll(a, k)
	}
	if err := b.pass(ctx, k); err != nil {
		return err
	}
	result := b.release.data[:]
	if len(a.Recv) > inline {
		writer, err := b.writer()
		if err != nil {
			return err
		}
		result = b.got(writer, k, len(a.Recv))
	}
	copy(a.Recv, result)
	b.leave(k)
	return nil
}

// combineForAll is the part of the last member.
func (b *Board) combineForAll(a *Args, k uint64) error {
	if err := b.checkAll(k); err != nil {
		return err
	}
	for m := range b.peers {
		b.in[m] = b.got(m, k, len(a.Send))
	}
	b.fold(a, a.Recv, b.in, nil)
	if len(a.Recv) > inline {
		bulk.Store(b.got(b.rank, k, len(a.Recv)), a.Recv)
		b.postWriter()
	} else {
		copy(b.release.data[:], a.Recv)
	}
	b.open(k)
	b.leave(k)
	return nil
}
