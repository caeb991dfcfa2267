package message

import "context"

// ScatterBinomial: blocks separate down the tree of tree.go.
//
//	round 1   0 --> 4 (4 5 6 7)
//	round 2   0 --> 2 (2 3), 4 --> 6 (6 7)
//	round 3   0 --> 1, 2 --> 3, 4 --> 5, 6 --> 7
//
// Cost: L rounds (at most one more if the root is not member 0), m(n-1)/n bytes.
// Members that relay take scratch memory for all members below them; they need to
// know the counts of all members.
//
// (Thakur, Rabenseifner and Gropp, "Optimization of Collective Communication
// Operations in MPICH", 2005.)
func ScatterBinomial(ctx context.Context, c Transport, a *Args) error {
	n := c.Size()
	r := branch{b: a.scattered(), root: a.Root, n: n}
	v := turned(c.Rank(), a.Root, n) // this member's number in the tree
	low := lowest(v, n)              // distance to its parent
	end := min(v+low, n)             // it relays the run of numbers v to end-1
	mem := a.Recv                    // of a member without children
	if end-v > 1 && v != 0 {
		first, second := r.sizes(v, end)
		mem = a.Scratch(first + second)
	}
	if err := r.fill(ctx, c, mem, v, low, end); err != nil {
		return err
	}
	for mask := low >> 1; mask > 0; mask >>= 1 { // the farthest child first: its run is the longest
		if v+mask >= n {
			continue
		}
		if err := r.give(ctx, c, a.Send, mem, v, v+mask, min(v+2*mask, n)); err != nil {
			return err
		}
	}
	if v == 0 {
		mem = r.b.of(a.Send, a.Root)
	}
	copy(a.Recv, mem)
	return nil
}

// fill receives the run of numbers v to end-1 in mem, if v is not the root. A run that comes from
// the root may be in two parts: see branch. The distance to the parent is low.
func (r branch) fill(ctx context.Context, c Transport, mem []byte, v, low, end int) error {
	parent := rankOf(v-low, r.root, r.n)
	switch v {
	case 0:
		return nil
	case low:
		one, two := r.cut(mem, v, end)
		return recvParts(ctx, c, parent, one, two)
	default:
		return c.Recv(ctx, parent, mem)
	}
}

// give sends the run i to j-1 to the child i of v: at the root from all,
// elsewhere from mem, which begins with v's block.
func (r branch) give(ctx context.Context, c Transport, all, mem []byte, v, i, j int) error {
	child := rankOf(i, r.root, r.n)
	if v != 0 {
		return c.Send(ctx, child, r.held(mem, v, i, j))
	}
	one, two := r.lying(all, i, j)
	return sendParts(ctx, c, child, one, two)
}
