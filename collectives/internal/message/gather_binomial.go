package message

import "context"

// GatherBinomial: blocks come together up the tree of tree.go.
//
//	round 1   1 --> 0, 3 --> 2, 5 --> 4, 7 --> 6
//	round 2   2 --> 0 (2 3), 6 --> 4 (6 7)
//	round 3   4 --> 0 (4 5 6 7)
//
// Cost: L rounds (at most one more if the root is not member 0), m(n-1)/n bytes.
// Members that relay take scratch memory for all members below them; they need to
// know the counts of all members.
//
// (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005.)
func GatherBinomial(ctx context.Context, c Transport, a *Args) error {
	n := c.Size()
	r := branch{b: a.gathered(), root: a.Root, n: n}
	v := turned(c.Rank(), a.Root, n) // this member's number in the tree
	low := lowest(v, n)              // distance to its parent
	end := min(v+low, n)             // it relays the run of numbers v to end-1
	mem := a.Send                    // of a member without children
	switch {
	case v == 0:
		copy(r.b.of(a.Recv, a.Root), a.Send)
	case end-v > 1:
		first, second := r.sizes(v, end)
		mem = a.Scratch(first + second)
		copy(mem, a.Send)
	}
	for mask := 1; mask < low && v+mask < n; mask <<= 1 {
		if err := r.take(ctx, c, a.Recv, mem, v, v+mask, min(v+2*mask, n)); err != nil {
			return err
		}
	}
	parent := rankOf(v-low, a.Root, n)
	switch v {
	case 0:
		return nil
	case low:
		one, two := r.cut(mem, v, end)
		return sendParts(ctx, c, parent, one, two)
	default:
		return c.Send(ctx, parent, mem)
	}
}

// take receives the run i to j-1 from the child i of v. The root receives it to
// its place in all, another member to mem, which begins with v's block.
func (r branch) take(ctx context.Context, c Transport, all, mem []byte, v, i, j int) error {
	child := rankOf(i, r.root, r.n)
	if v != 0 {
		return c.Recv(ctx, child, r.held(mem, v, i, j))
	}
	one, two := r.lying(all, i, j)
	return recvParts(ctx, c, child, one, two)
}
