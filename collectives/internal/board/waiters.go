package board

import (
	"context"
	"math/bits"
	"sync/atomic"
)

// A member that waits until another one has left a turn, or knows that all have, requests a
// ring of it. A member that leaves a turn rings those that wait, and so connects to no other
// member:
//
//	waiting member                      member that leaves
//	set its bit on the other board      left = k
//	if left < k: sleep                  take all bits, ring those members
//
// The waiting member sees the turn, or the member that leaves sees the bit (Dekker's argument).
// It is otherwise if the look at the bits overtakes the store of left. Then the waiting member
// sees the turn after a pause ([wait.Stored]). It sets the bit again at each look, since the
// member that leaves may take the bit for an earlier turn.

// waiters has a bit for each member.
type waiters [MaxMembers / 64]atomic.Uint64

// add sets the bit of member m.
func (a *waiters) add(m int) {
	word, bit := &a[m/64], uint64(1)<<(m%64)
	if word.Load()&bit == 0 { // a store would take the line from the caches of other members
		word.Or(bit)
	}
}

// awaitLeft returns once member m has left turn k.
func (b *Board) awaitLeft(ctx context.Context, m int, k uint64) error {
	b.from = m
	return b.waitBy(ctx, &b.peers[m].left, k, b.readyLeft)
}

// paced returns once all members have left turn k - Ahead, so that this member may post
// turn k, held as h says. It waits for word of the pacer, or itself for all members.
//
// Invariant: no member posts turn k before all members have left turn k - Ahead. An inquiry
// compares the latest calls of members, and so must find the calls of one that is behind.
func (b *Board) paced(ctx context.Context, k uint64, h hold) error {
	if k <= Ahead || max(b.pacerKnows, b.known) >= k-Ahead {
		return nil
	}
	if h.pacer == allMembers {
		return b.allLeft(ctx, k-Ahead)
	}
	if err := b.reach(ctx, h.pacer); err != nil {
		return err
	}
	b.from = h.pacer
	known := &b.peers[h.pacer].known
	if err := b.waitBy(ctx, known, k-Ahead, b.readyLeft); err != nil {
		return err
	}
	b.pacerKnows = known.Load()
	return nil
}

// letPost tells the other members that they may post turn k. This one is their pacer.
func (b *Board) letPost(ctx context.Context, k uint64) error {
	if err := b.reachAll(ctx); err != nil {
		return err
	}
	if k <= Ahead || b.peers[b.rank].known.Load() >= k-Ahead {
		return nil
	}
	if b.known < k-Ahead {
		if err := b.allLeft(ctx, k-Ahead); err != nil {
			return err
		}
	}
	return b.tell(ctx)
}

// firstMember is the pacer of calls without a root.
const firstMember = 0

// pace has member 0 let the others post turn k. It connects to them only once it has to.
func (b *Board) pace(ctx context.Context, k uint64) error {
	if b.rank != firstMember || k <= Ahead {
		return nil
	}
	return b.letPost(ctx, k)
}

// lookLeft reports whether the word of the member from is there. Else that member will ring.
func (b *Board) lookLeft() bool {
	if b.ready() {
		return true
	}
	b.peers[b.from].waiters.add(b.rank)
	return b.ready()
}

// ringWaiters wakes the members that wait for the turn which this member has left.
func (b *Board) ringWaiters(ctx context.Context) error {
	for i := range (b.n + 63) / 64 {
		word := &b.peers[b.rank].waiters[i]
		if word.Load() == 0 { // pairs with add
			continue
		}
		for waiting := word.Swap(0); waiting != 0; waiting &= waiting - 1 {
			m := 64*i + bits.TrailingZeros64(waiting)
			if m >= b.n || m == b.rank {
				return ErrCorrupt
			}
			if err := b.ringAt(ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}
