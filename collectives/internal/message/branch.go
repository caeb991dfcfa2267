package message

import "context"

// A branch computes where blocks of a binomial gather or scatter lie. The tree numbers the
// members from the root on: the root is 0, the member behind it 1. A member relays a run: the
// blocks of the numbers i to j-1, which are its own and those of all members below it.
//
//	numbers                0 1 2 3 4         root 3 of 5 members
//	members                3 4 0 1 2
//	run of 1 to 3            4 0 1
//	in the root's buffer   0 1 . . 4         two parts: member 4, then members 0 and 1
//
// The root's buffer is in the order of members. So a run may reach beyond its end and go on
// at its beginning. The root sends and receives such a run in two messages.
type branch struct {
	b       blocks
	root, n int
}

// parts cuts the run of numbers i to j-1 at the end of the root's buffer. The run is the
// members lo to mid-1, followed by the members 0 to rest-1.
func (r branch) parts(i, j int) (lo, mid, rest int) {
	lo = rankOf(i, r.root, r.n)
	mid = lo + j - i
	if i == j || mid <= r.n {
		return lo, mid, 0
	}
	return lo, r.n, mid - r.n
}

// sizes returns the bytes of both parts of the run of numbers i to j-1.
func (r branch) sizes(i, j int) (first, second int) {
	lo, mid, rest := r.parts(i, j)
	return r.size(lo, mid), r.size(0, rest)
}

// size returns the bytes of the blocks of members i to j-1.
func (r branch) size(i, j int) int {
	if i >= j {
		return 0
	}
	lo, _ := r.b.bounds(i)
	_, hi := r.b.bounds(j - 1)
	return hi - lo
}

// held returns the run of numbers i to j-1 in the memory of a relay. The slice mem begins with the
// block of number first, and has the blocks in the order of numbers.
func (r branch) held(mem []byte, first, i, j int) []byte {
	x, y := r.sizes(first, i)
	p, q := r.sizes(i, j)
	return mem[x+y:][:p+q]
}

// cut returns the two parts of the run of numbers i to j-1, which fills mem.
func (r branch) cut(mem []byte, i, j int) (one, two []byte) {
	first, _ := r.sizes(i, j)
	return mem[:first], mem[first:]
}

// lying returns the two parts of the run of numbers i to j-1 in the root's buffer.
func (r branch) lying(buf []byte, i, j int) (one, two []byte) {
	lo, mid, rest := r.parts(i, j)
	return r.b.span(buf, lo, mid), r.b.span(buf, 0, rest)
}

// sendParts sends both parts of a run, if there are two.
func sendParts(ctx context.Context, c Transport, to int, one, two []byte) error {
	if err := c.Send(ctx, to, one); err != nil || len(two) == 0 {
		return err
	}
	return c.Send(ctx, to, two)
}

// recvParts receives the parts of sendParts.
func recvParts(ctx context.Context, c Transport, from int, one, two []byte) error {
	if err := c.Recv(ctx, from, one); err != nil || len(two) == 0 {
		return err
	}
	return c.Recv(ctx, from, two)
}
