package message

import "context"

// BroadcastScatterAllGather: the root scatters shares down the binomial tree,
// then all members gather them in a ring.
//
//	root 0, n = 4     scatter             all-gather
//	member 0   a b c d    a . . .             a b c d
//	member 1   . . . .    . b . .    ring     a b c d
//	member 2   . . . .    . . c .    -->      a b c d
//	member 3   . . . .    . . . d             a b c d
//
// Cost: L + n-1 rounds, 2m(n-1)/n bytes.
//
// (Barnett, Gupta, Payne, Shuler, van de Geijn and Watts, "Interprocessor
// Collective Communication Library (InterCom)", 1994.)
func BroadcastScatterAllGather(ctx context.Context, c Transport, a *Args) error {
	b := shares(len(a.Recv), c.Size(), a.Elem)
	if err := scatterShares(ctx, c, a.Root, a.Recv, b); err != nil {
		return err
	}
	return ringAllGather(ctx, c, a.Root, a.Recv, b)
}

// scatterShares sends share v of the root's data to the member with number v from
// the root on, to its place in data. A member that relays keeps the shares of all
// members below it in its own data.
func scatterShares(ctx context.Context, c Transport, root int, data []byte, b blocks) error {
	n := c.Size()
	v := turned(c.Rank(), root, n)
	low := lowest(v, n)
	if v != 0 {
		if err := c.Recv(ctx, rankOf(v-low, root, n), b.span(data, v, min(v+low, n))); err != nil {
			return err
		}
	}
	for mask := low >> 1; mask > 0; mask >>= 1 {
		child := v + mask
		if child >= n {
			continue
		}
		if err := c.Send(ctx, rankOf(child, root, n), b.span(data, child, min(child+mask, n))); err != nil {
			return err
		}
	}
	return nil
}
