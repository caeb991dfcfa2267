package message

// blocks describes the places of the blocks of a buffer: by counts and offsets,
// as nearly equal shares of a vector in whole elements, or all of one length.
type blocks struct {
	counts, offsets []int
	each            int // bytes of each block, if all have one length
	vector, n, elem int // bytes, shares and element of a vector that is shared
}

// alike returns blocks of each bytes one after another, unless counts are given.
func alike(each int, counts, offsets []int) blocks {
	return blocks{each: each, counts: counts, offsets: offsets}
}

// shares cuts a vector of so many bytes into n nearly equal blocks.
func shares(vector, n, elem int) blocks {
	return blocks{vector: vector, n: n, elem: elem}
}

// gathered returns the blocks of Gather's and AllGather's Recv.
func (a *Args) gathered() blocks { return alike(len(a.Send), a.RecvCounts, a.RecvOffsets) }

// scattered returns the blocks of Scatter's Send.
func (a *Args) scattered() blocks { return alike(len(a.Recv), a.SendCounts, a.SendOffsets) }

// reduced returns the blocks of ReduceScatter's Send.
func (a *Args) reduced() blocks { return alike(len(a.Recv), a.RecvCounts, a.RecvOffsets) }

// toAll returns the blocks of AllToAll's Send and Recv.
func (a *Args) toAll(n int) (out, in blocks) {
	return alike(len(a.Send)/n, a.SendCounts, a.SendOffsets), alike(len(a.Recv)/n, a.RecvCounts, a.RecvOffsets)
}

// bounds returns the range of block i.
func (b blocks) bounds(i int) (lo, hi int) {
	switch {
	case b.counts != nil:
		return b.offsets[i], b.offsets[i] + b.counts[i]
	case b.n > 0:
		whole := b.vector / b.elem
		return whole * i / b.n * b.elem, whole * (i + 1) / b.n * b.elem
	default:
		return i * b.each, (i + 1) * b.each
	}
}

// size returns the bytes of block i.
func (b blocks) size(i int) int {
	lo, hi := b.bounds(i)
	return hi - lo
}

// of returns block i of buf.
func (b blocks) of(buf []byte, i int) []byte {
	lo, hi := b.bounds(i)
	return buf[lo:hi]
}

// span returns blocks i to j-1 of buf, which follow one another.
func (b blocks) span(buf []byte, i, j int) []byte {
	if i == j {
		return nil
	}
	lo, _ := b.bounds(i)
	_, hi := b.bounds(j - 1)
	return buf[lo:hi]
}

// same reports whether x and y are the same slice.
func same(x, y []byte) bool { return len(x) > 0 && len(y) > 0 && &x[0] == &y[0] }
