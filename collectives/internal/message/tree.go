package message

import "math/bits"

// The binomial tree of n members in the order from the root on, numbered v =
// (rank - root) mod n. The parent of v is v without its lowest bit; its children
// are v + 1, v + 2, v + 4, ... below that bit. The members below v are the run
// from v to v + lowest bit - 1, as far as there are members.
//
//	            0
//	      /   /   \
//	     4   2     1
//	   /  \   \
//	  6    5   3
//	  |
//	  7

// turned returns the number of a member in the order from the root on.
func turned(rank, root, n int) int { return (rank - root + n) % n }

// rankOf returns the member with number v in the order from the root on.
func rankOf(v, root, n int) int { return (v + root) % n }

// lowest returns the lowest bit of v; for the root, the lowest power of two that
// is not below n.
func lowest(v, n int) int {
	if v == 0 {
		return 1 << bits.Len(uint(n-1))
	}
	return v & -v
}

// ceilLog2 returns the number of rounds in which a binomial tree reaches n
// members.
func ceilLog2(n int) int { return bits.Len(uint(n - 1)) }
