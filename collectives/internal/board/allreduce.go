package board

import "context"

// AllReduce gives every member the combination of all vectors.
func (b *Board) AllReduce(ctx context.Context, seq, signature uint64, a *Args) error {
	if err := b.begin(seq, signature); err != nil {
		return err
	}
	return b.end(b.allReduce(ctx, a))
}

func (b *Board) allReduce(ctx context.Context, a *Args) error {
	size := len(a.Send)
	if b.n == 1 {
		copyTo(a.Recv, a.Send)
		return nil
	}
	if b.asks(size) {
		var in Place
		if a.RecvAt.Region != 0 {
			in = a.inPlace()
		}
		if k, err := b.ask(ctx, in, a.RecvAt); k != 0 || err != nil {
			return b.reduceInPlace(ctx, a, k, everyone, err)
		}
	}
	switch {
	case b.n == 2:
		return b.swap(ctx, a)
	case size <= b.last:
		return b.combineLast(ctx, a)
	}
	return b.shared(ctx, a, everyone)
}

// swap has two members give each other their vectors and both combine them:
//
//	member 0   post a0 ──┐  ┌── see a1, a0∘a1
//	                      ╲╱
//	member 1   post a1 ───╱╲─── see a0, a0∘a1
//
// A small vector costs one trip of a cache line. What passes between the cores
// is as much as if each combined half and passed the result on, with one wait
// in place of two. Chunks are posted a turn ahead.
func (b *Board) swap(ctx context.Context, a *Args) error {
	size := whole(b.bay, a.Elem)
	n := max(chunks(len(a.Send), size), 1)
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
		if _, err := b.see(ctx, 1-b.rank, k); err != nil {
			return err
		}
		if c == 0 {
			b.met(k)
		} else {
			b.met(k - 1) // posted ahead: the other may still be in the turn before
		}
		mine := cut(a.Send, c, size)
		b.pair(a.Combine, cut(a.Recv, c, size), mine, b.got(1-b.rank, k, len(mine)))
		b.leave(k)
	}
	return nil
}

func (b *Board) swapPut(ctx context.Context, chunk []byte) error {
	k := b.next()
	if err := b.put(ctx, k, hold{k, everyone}, chunk); err != nil {
		return err
	}
	b.ring()
	return nil
}

// combineLast has more than two members post their vectors and count
// themselves; the last to come combines all and releases the others with the
// result:
//
//	members  0  1  2  3
//	         │  │  │  │   post, count
//	         └──┴──┼──┘
//	               2      the last: a0∘a1∘a2∘a3
//	         ┌──┬──┼──┐
//	         0  1  2  3   read
//
// One atomic addition and one wait for each, as in the barrier that counts in
// one place (Mellor-Crummey and Scott, "Algorithms for Scalable Synchronization
// on Shared-Memory Multiprocessors", 1991). The result lies on the release
// line, or in the bay of whoever came last.
func (b *Board) combineLast(ctx context.Context, a *Args) error {
	k := b.next()
	if err := b.put(ctx, k, hold{k, everyone}, a.Send); err != nil {
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
		who, err := b.who()
		if err != nil {
			return err
		}
		result = b.got(who, k, len(a.Recv))
	}
	copy(a.Recv, result)
	b.leave(k)
	return nil
}

// combineForAll is what the last to come does.
func (b *Board) combineForAll(a *Args, k uint64) error {
	if err := b.checkAll(k); err != nil {
		return err
	}
	for m := range b.peers {
		b.in[m] = b.got(m, k, len(a.Send))
	}
	b.fold(a, a.Recv, b.in, nil)
	if len(a.Recv) > inline {
		copy(b.got(b.rank, k, len(a.Recv)), a.Recv)
		b.sayWho()
	} else {
		copy(b.release.data[:], a.Recv)
	}
	b.open(k)
	b.leave(k)
	return nil
}
