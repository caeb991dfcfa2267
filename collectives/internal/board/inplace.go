package board

import "context"

// inPlace returns the place at which other members find this member's operand:
// its own, or the result's memory, to which inPlace copies it.
func (b *Board) inPlace(a *Args) Place {
	if a.SendAt.Region != 0 || a.RecvAt.Region == 0 {
		return a.SendAt
	}
	b.copyTo(a.Recv, a.Send)
	return a.RecvAt
}

// reduceInPlace has each member combine its share of all vectors, in place, into
// the results of all members, or of the root. Members posted the places in turn
// k.
//
//	in   0 │ a00 a01 │    1 │ a10 a11 │      member 0 does the left share,
//	out  0 │ x0  x1  │    1 │ x0  x1  │      member 1 the right one
func (b *Board) reduceInPlace(ctx context.Context, a *Args, k uint64, root int, err error) error {
	if err != nil {
		return err
	}
	if b.views == nil {
		b.views = make([][]byte, b.n)
	}
	from, to := b.share(len(a.Send), a.Elem, b.rank)
	for m := range b.peers {
		in, out := b.placesOf(m, k)
		b.views[m] = nil
		if b.in[m], err = b.at(m, in.shift(from), to-from); err != nil {
			return err
		}
		if root == allMembers || root == m {
			if b.views[m], err = b.at(m, out.shift(from), to-from); err != nil {
				return err
			}
		}
	}
	if err := b.borrow(allMembers, k); err != nil {
		return err
	}
	switch {
	case a.ByProgram:
		err = b.foldByProgram(a, to-from)
	case root == allMembers:
		b.fold(a, b.views[b.rank], b.in, b.views)
	default:
		b.fold(a, b.views[root], b.in, nil)
	}
	if err != nil {
		return err
	}
	return b.finish(ctx, k)
}

// foldByProgram is fold of n bytes into all views by an operator that may outlast the wait
// of an owner that gives up. It writes to this member's own memory, and copies the result
// to memory that is still leased.
func (b *Board) foldByProgram(a *Args, n int) error {
	step := b.piece(a.Elem)
	for from := 0; from < n; from += step {
		to := min(from+step, n)
		part := b.between(to - from)
		b.foldPiece(a.Combine, part, b.in, from, to)
		if err := b.checkLease(allMembers); err != nil {
			return err
		}
		for _, out := range b.views {
			if out != nil {
				copy(out[from:to], part)
			}
		}
	}
	return nil
}
