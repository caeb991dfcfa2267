package board

import (
	"context"

	"github.com/gopgas/gopgas/internal/bulk"
)

// Scan gives every member the combination of all vectors up to its own.
func (b *Board) Scan(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	return b.end(b.scan(ctx, a, true))
}

// ExScan gives every member the combination of all vectors ahead of its own; it
// does not write to member 0.
func (b *Board) ExScan(ctx context.Context, seq, chain uint64, a *Args) error {
	if err := b.begin(seq, chain, a); err != nil {
		return err
	}
	return b.end(b.scan(ctx, a, false))
}

// scan runs a scan of either kind. An exclusive one leaves the output of member 0 as it is.
func (b *Board) scan(ctx context.Context, a *Args, inclusive bool) error {
	if b.n == 1 {
		if inclusive {
			b.copyTo(a.Recv, a.Send)
		}
		return nil
	}
	return b.scanChain(ctx, a, inclusive)
}

// scanChain hands results from member to member, a chunk in a turn. So all members combine parts of
// long vectors at the same time:
//
//	a0 ──> a0∘a1 ──> a0∘a1∘a2 ──> ...
//
// Short ones go the same way. A gate would take as many wake-ups, and have all
// members wait for each other without need. In a chain they run ahead, turn after
// turn.
func (b *Board) scanChain(ctx context.Context, a *Args, inclusive bool) error {
	size := b.stream(len(a.Send), a.Elem)
	for c := range chunks(len(a.Send), size) {
		k := b.next()
		if err := b.pace(ctx, k); err != nil {
			return err
		}
		mine := cut(a.Send, c, size)
		var before []byte
		if b.rank > 0 {
			if _, err := b.see(ctx, b.rank-1, k); err != nil {
				return err
			}
			var err error
			if before, err = b.got(b.rank-1, k, len(mine)); err != nil {
				return err
			}
		}
		if b.rank+1 < b.n {
			if err := b.handOn(ctx, a, k, before, mine); err != nil {
				return err
			}
		}
		b.prefix(a, cut(a.Recv, c, size), before, mine, inclusive)
		if err := b.leave(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// handOn posts before∘mine for the next member.
func (b *Board) handOn(ctx context.Context, a *Args, k uint64, before, mine []byte) error {
	l, space, err := b.space(ctx, k, hold{until: k, by: b.rank + 1, pacer: firstMember}, len(mine))
	if err != nil {
		return err
	}
	if b.rank == 0 {
		bulk.Store(space, mine)
	} else {
		a.Combine(space, before, mine)
	}
	b.post(l, k, len(mine))
	b.ahead(k)
	return b.ringAt(ctx, b.rank+1)
}

// prefix writes this member's result.
func (b *Board) prefix(a *Args, dst, before, mine []byte, inclusive bool) {
	switch {
	case b.rank == 0 && inclusive:
		b.copyTo(dst, mine)
	case b.rank == 0:
	case inclusive:
		a.Combine(dst, before, mine)
	default:
		copy(dst, before)
	}
}
