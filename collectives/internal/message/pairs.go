package message

import "math/bits"

// pairs let algorithms for powers of two serve any number of members. With p the
// largest power of two that is not above n, the first 2(n-p) members form pairs;
// the lower one of each stands for both:
//
//	n = 6, p = 4      member   0 1 | 2 3 | 4 | 5
//	                  virtual   0  |  1  | 2 | 3
//
// The members of a virtual rank follow one another, and so do those of any run of
// virtual ranks. So orders and blocks stay whole.
type pairs struct{ p, rest int }

// pairsOf returns the pairs of n members: p virtual ranks, of which the first rest have two members.
func pairsOf(n int) pairs {
	p := 1 << (bits.Len(uint(n)) - 1)
	return pairs{p: p, rest: n - p}
}

// virtual returns the virtual rank of a member, and whether the member stands for
// it.
func (q pairs) virtual(rank int) (v int, stands bool) {
	if rank < 2*q.rest {
		return rank / 2, rank%2 == 0
	}
	return rank - q.rest, true
}

// member returns the member that stands for v, the first of v's members;
// member(p) is the number of members.
func (q pairs) member(v int) int {
	if v < q.rest {
		return 2 * v
	}
	return v + q.rest
}

// paired reports whether v has two members.
func (q pairs) paired(v int) bool { return v < q.rest }
