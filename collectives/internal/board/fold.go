package board

import "math/bits"

// pair combines the operands of two members.
func (b *Board) pair(f Combine, dst, mine, theirs []byte) {
	if b.rank == 0 {
		f(dst, mine, theirs)
	} else {
		f(dst, theirs, mine)
	}
}

// fold sets dst to in[0]∘in[1]∘..., and also every element of also that is not
// nil. The slice dst may be one of the operands, and also[m] the operand of m;
// they do not overlap otherwise. It works piece by piece, so that the result
// between two operands stays in a core's own cache.
func (b *Board) fold(a *Args, dst []byte, in, also [][]byte) {
	step := max(len(dst), 1)
	if step > b.block && (len(in) > 2 || also != nil) {
		step = b.piece(a.Elem)
	}
	for from := 0; from < len(dst); from += step {
		to := min(from+step, len(dst))
		b.foldPiece(a.Combine, dst[from:to], in, from, to)
		for m, out := range also {
			if m != b.rank {
				copy(out[from:to], dst[from:to])
			}
		}
	}
}

// foldPiece writes dst with the last operand only, so it may be any of them.
func (b *Board) foldPiece(f Combine, dst []byte, in [][]byte, from, to int) {
	last := in[len(in)-1][from:to]
	switch len(in) {
	case 1:
		b.copyTo(dst, last)
		return
	case 2:
		f(dst, in[0][from:to], last)
		return
	}
	part := b.between(to - from)
	f(part, in[0][from:to], in[1][from:to])
	for _, operand := range in[2 : len(in)-1] {
		f(part, part, operand[from:to])
	}
	f(dst, part, last)
}

// piece returns the number of bytes that fold combines at a time: whole elements.
func (b *Board) piece(elem int) int { return max(b.block, elem) / elem * elem }

// between returns n bytes of scratch, for a result between two operands. Many boards combine no more than a
// few bytes ever.
func (b *Board) between(n int) []byte {
	if n > len(b.scratch) {
		b.scratch = make([]byte, 1<<bits.Len(uint(n-1)))
	}
	return b.scratch[:n]
}

// share returns the range of a member's part of n bytes: whole elements, about as
// many for each member.
func (b *Board) share(n, elem, member int) (from, to int) {
	elems := n / elem
	return elems * member / b.n * elem, elems * (member + 1) / b.n * elem
}

// whole returns the largest number of whole elements' bytes up to n, but one
// element at least.
func whole(n, elem int) int { return max(n/elem, 1) * elem }

// cut returns chunk number c of buf.
func cut(buf []byte, c, size int) []byte {
	from := min(c*size, len(buf))
	return buf[from:min(from+size, len(buf))]
}

// chunks returns the number of chunks of a size in n bytes: at least one.
func chunks(n, size int) int {
	if n <= size { // most calls: no division needed
		return 1
	}
	return (n + size - 1) / size
}

// fitting returns the size of the chunks of n bytes that have up to most, which is
// an element at least.
func fitting(n, most, elem int) int {
	if n <= most {
		return max(n, elem)
	}
	return whole(most, elem)
}

// stream returns the size of a stream's chunks: with short ones the reader begins
// early, and long ones cost fewer turns.
func (b *Board) stream(n, elem int) int {
	return fitting(n, min(max(n/largeBuffers, b.pipe), b.pipeMost, b.large), elem)
}
