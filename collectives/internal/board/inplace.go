package board

import "context"

// inPlace returns where the others find this member's operand: where it lies,
// or in the result's memory, to which it is copied.
func (b *Board) inPlace(a *Args) Place {
	if a.SendAt.Region != 0 || a.RecvAt.Region == 0 {
		return a.SendAt
	}
	b.copyTo(a.Recv, a.Send)
	return a.RecvAt
}

// reduceInPlace has each member combine its share of all vectors, where they
// lie, into the results of everyone, or of the root. Where they lie was posted
// in turn k.
//
//	in   0 │ a00 a01 │    1 │ a10 a11 │      member 0 does the left share,
//	out  0 │ x0  x1  │    1 │ x0  x1  │      member 1 the right one
func (b *Board) reduceInPlace(ctx context.Context, a *Args, k uint64, root int, err error) error {
	if err != nil {
		return err
	}
	if err := b.borrow(everyone, k); err != nil {
		return err
	}
	from, to := b.share(len(a.Send), a.Elem, b.rank)
	for m := range b.peers {
		in, out := b.placesOf(m, k)
		if b.in[m], err = b.at(m, in.shift(from), to-from); err != nil {
			return err
		}
		if root == everyone || root == m {
			if b.views[m], err = b.at(m, out.shift(from), to-from); err != nil {
				return err
			}
		}
	}
	if root == everyone {
		b.fold(a, b.views[b.rank], b.in, b.views)
	} else {
		b.fold(a, b.views[root], b.in, nil)
	}
	b.leave(k)
	return b.finish(ctx)
}
