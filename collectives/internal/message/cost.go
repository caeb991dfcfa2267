package message

import "math/bits"

// These functions are the costs that the headers of the algorithms claim, by the
// members, the bytes and the segment.

func rootEach(n, m, _ int) Cost { return Cost{n - 1, (n - 1) * m} }

func logarithmic(n, m, _ int) Cost { return Cost{ceilLog2(n), ceilLog2(n) * m} }

func eachBlock(n, m, _ int) Cost { return Cost{n - 1, (n - 1) * m / n} }

func treeBlocks(n, m, _ int) Cost { return Cost{ceilLog2(n), (n - 1) * m / n} }

// A costFunc returns the cost of an algorithm for n members and m bytes in pieces of seg bytes.
type costFunc func(n, m, seg int) Cost

// plus returns the cost of one call after another.
func plus(one, two costFunc) costFunc {
	return func(n, m, seg int) Cost {
		c, d := one(n, m, seg), two(n, m, seg)
		return Cost{c.Rounds + d.Rounds, c.Bytes + d.Bytes}
	}
}

func twice(once costFunc) costFunc { return plus(once, once) }

func scatterRing(n, m, _ int) Cost { return Cost{ceilLog2(n) + n - 1, 2 * (n - 1) * m / n} }

// pipeline is the cost of a chain in pieces of seg bytes.
func pipeline(n, m, seg int) Cost {
	if n == 1 || m == 0 {
		return Cost{}
	}
	seg = min(seg, m)
	return Cost{n - 2 + (m+seg-1)/seg, (n-2)*seg + m}
}

// unlessTwo is pipeline, but for two members, which need no segments.
func unlessTwo(n, m, seg int) Cost {
	if n == 2 {
		seg = m
	}
	return pipeline(n, m, seg)
}

// chunkedRing is the cost of a ring that goes round once for each chunk of n pieces.
func chunkedRing(n, m, seg int) Cost {
	chunks := (m + n*seg - 1) / (n * seg)
	return Cost{2 * chunks * (n - 1), 2 * (n - 1) * m / n}
}

// logTwo returns log2 p, p, and 1 if n is no power of two.
func logTwo(n int) (log, p, odd int) {
	log = bits.Len(uint(n)) - 1
	p = 1 << log
	return log, p, min(n-p, 1)
}

// doubling is the cost of exchanges of whole vectors at doubled distances.
func doubling(n, m, _ int) Cost {
	log, _, odd := logTwo(n)
	return Cost{log + 2*odd, (log + 2*odd) * m}
}

// halvingGather is the cost of a reduction by halves, and a gather of the parts.
func halvingGather(n, m, _ int) Cost {
	log, p, odd := logTwo(n)
	return Cost{2*log + odd, 2*(p-1)*m/p + odd*m}
}

// halvingDoubling is the cost of a reduction by halves, and an exchange of the parts at doubled
// distances.
func halvingDoubling(n, m, _ int) Cost {
	log, p, odd := logTwo(n)
	return Cost{2 * (log + odd), 2*(p-1)*m/p + 2*odd*m}
}

// doublingBlocks counts, in each round, the largest run of blocks for which a
// virtual rank stands.
func doublingBlocks(n, m, _ int) Cost {
	log, p, odd := logTwo(n)
	blocks := odd * (n + 1)
	for run := 1; run < p; run <<= 1 {
		blocks += run + min(run, n-p)
	}
	return Cost{log + 2*odd, blocks * m / n}
}

func neighborExchange(n, m, _ int) Cost { return Cost{n / 2, (n - 1) * m / n} }

// turns is the cost of the linear algorithms, in which one member after another sends.
func turns(n, m, _ int) Cost {
	if n == 1 {
		return Cost{}
	}
	return Cost{3*n - 4, (3*n - 4) * m / n}
}

// bruck is the cost of Bruck's all-to-all: in round k a member passes on the blocks whose distance has
// bit k.
func bruck(n, m, _ int) Cost {
	blocks := 0
	for dist := range n {
		blocks += bits.OnesCount(uint(dist))
	}
	return Cost{ceilLog2(n), blocks * m / n}
}
