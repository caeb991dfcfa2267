package message

import "context"

// A branch is the run of blocks of all members below a member of the binomial
// tree, in the order from the root on. Members that relay keep that order. Among
// the root's blocks, which are in the members' order, the run may go over the
// end. It is then two parts: the root cuts its messages there, so that it needs
// no memory in another order.
type branch struct {
	b       blocks
	root, n int
}

// parts cuts the run of numbers i to j-1 at the end of the buffer. It is the
// members lo to mid-1 and, if it goes over, 0 to rest-1.
func (r branch) parts(i, j int) (lo, mid, rest int) {
	lo = rankOf(i, r.root, r.n)
	mid = lo + j - i
	if i == j || mid <= r.n {
		return lo, mid, 0
	}
	return lo, r.n, mid - r.n
}

// sizes returns the bytes of both parts of a run.
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

// held returns a run in memory that begins with number first.
func (r branch) held(mem []byte, first, i, j int) []byte {
	x, y := r.sizes(first, i)
	p, q := r.sizes(i, j)
	return mem[x+y:][:p+q]
}

// cut returns the two parts of a run that fills mem.
func (r branch) cut(mem []byte, i, j int) (one, two []byte) {
	first, _ := r.sizes(i, j)
	return mem[:first], mem[first:]
}

// lying returns the two parts of a run in the buffer of all blocks.
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
