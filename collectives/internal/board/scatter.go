package board

import (
	"context"

	"github.com/gopgas/gopgas/internal/bulk"
)

// Scatter gives every member its block of the root's; all blocks have the same
// length. The root does not wait for the other members, unless they read its
// buffer in place.
func (b *Board) Scatter(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	b.rootPosts = true
	return b.end(b.scatter(ctx, a))
}

// scatter hands the blocks out. The root copies its own block last.
func (b *Board) scatter(ctx context.Context, a *Args) error {
	size := len(a.Recv)
	blocks := &table{buf: a.Send, each: size}
	if b.n > 1 {
		if err := b.scatterOut(ctx, a, blocks, size); err != nil {
			return err
		}
	}
	if b.rank == a.Root { // last, since the other members wait for theirs
		b.copyTo(a.Recv, blocks.block(b.rank))
	}
	return nil
}

// scatterOut is the part of a member that is not the root: it copies its block from the root's buffer
// in place, or from the root's board.
func (b *Board) scatterOut(ctx context.Context, a *Args, blocks *table, size int) error {
	if b.usesPlaces(size, 0) && size >= b.direct {
		if k, at, err := b.learn(ctx, a.Root, a.SendAt); k != 0 || err != nil {
			return b.pull(ctx, a, k, at.shift(b.rank*size), a.Recv, err)
		}
	}
	return b.hand(ctx, a, blocks, size)
}

// hand streams chunks of all blocks side by side; each member takes its own.
// longest is the length of the longest block.
func (b *Board) hand(ctx context.Context, a *Args, blocks *table, longest int) error {
	size := b.stride(longest, a.Elem)
	for c := range chunks(longest, size) {
		k := b.next()
		if b.rank == a.Root {
			if err := b.spread(ctx, k, blocks, c, size); err != nil {
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
			from, err := b.mine(a.Root, k, size)
			if err != nil {
				return err
			}
			copy(cut(a.Recv, c, size), from)
		}
		if err := b.leave(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// spread posts chunk c of the blocks for all other members side by side.
func (b *Board) spread(ctx context.Context, k uint64, blocks *table, c, size int) error {
	l, space, err := b.space(ctx, k, forAll(k), (b.n-1)*size)
	if err != nil {
		return err
	}
	for m := range b.peers {
		if m != b.rank {
			bulk.Store(space, blocks.chunk(m, c, size))
			space = space[size:]
		}
	}
	b.post(l, k, (b.n-1)*size)
	return nil
}

// mine returns the chunk that member m posted in turn k for this member.
func (b *Board) mine(m int, k uint64, size int) ([]byte, error) {
	place := b.rank
	if place > m {
		place--
	}
	all, err := b.got(m, k, (b.n-1)*size)
	if err != nil {
		return nil, err
	}
	return all[place*size:][:size], nil
}

// stride returns the size of a chunk. Chunks lie side by side, one for each other member; longest
// is the length of the longest block.
func (b *Board) stride(longest, elem int) int {
	return fitting(longest, b.portion, elem)
}

// ScatterV is Scatter of blocks whose lengths the root alone knows.
func (b *Board) ScatterV(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	b.rootPosts = true
	return b.end(b.scatterV(ctx, a))
}

// scatterV is scatter with blocks of different lengths, which the root lists on its board.
func (b *Board) scatterV(ctx context.Context, a *Args) error {
	blocks := a.sendTable(len(a.Recv))
	if b.rank == a.Root {
		b.copyTo(a.Recv, blocks.block(b.rank))
	}
	if b.n == 1 {
		return nil
	}
	k, e, err := b.rootLists(ctx, a.Root, &blocks, a.SendAt, len(a.Recv))
	if err != nil || e.at.Region != 0 {
		return b.pull(ctx, a, k, e.at, a.Recv, err)
	}
	return b.hand(ctx, a, &blocks, e.longest)
}
