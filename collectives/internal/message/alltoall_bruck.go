package message

import "context"

// AllToAllBruck: the block for the member d on moves by the ones of d. In round k
// all blocks with 2^k in their remaining distance move on by 2^k, in one message.
//
//	n = 8, to go 5 = 101:   r --> r+1 --> r+5
//
// A block starts in Send and ends in Recv; scratch memory (2m) holds it in
// between and puts the messages together. For short blocks: the fewest rounds,
// but each block is sent up to L times.
//
// Cost: L rounds; round k moves the blocks whose distance has 2^k, m/2 bytes if n
// is a power of two.
//
// (Bruck, Ho, Kipnis, Upfal and Weathersby, "Efficient Algorithms for
// All-to-All Communications in Multiport Message-Passing Systems", 1997; without
// the turning of blocks before and after by Träff, Rougier and Hunold,
// "Implementing a Classic: Zero-copy All-to-all Communication with MPI
// Datatypes", 2014.)
func AllToAllBruck(ctx context.Context, c Transport, a *Args) error {
	n, rank := c.Size(), c.Rank()
	out, in := a.toAll(n)
	copy(in.of(a.Recv, rank), out.of(a.Send, rank))
	if n == 1 {
		return nil
	}
	half := n / 2 * out.each // no round moves more blocks
	mem := a.Scratch(len(a.Send) + 2*half)
	way, msg, came := mem[:len(a.Send)], mem[len(a.Send):][:half], mem[len(a.Send)+half:]
	for bit := 1; bit < n; bit <<= 1 {
		size := 0
		for dist := bit; dist < n; dist = nextWith(bit, dist) {
			block := out.of(way, dist)
			if dist&(bit-1) == 0 { // its first move
				block = out.of(a.Send, (rank+dist)%n)
			}
			size += copy(msg[size:], block)
		}
		if err := c.Exchange(ctx, (rank+bit)%n, msg[:size], (rank+n-bit)%n, came[:size]); err != nil {
			return err
		}
		from := came
		for dist := bit; dist < n; dist = nextWith(bit, dist) {
			block := out.of(way, dist)
			if dist < 2*bit { // its last move
				block = in.of(a.Recv, (rank+n-dist)%n)
			}
			from = from[copy(block, from):]
		}
	}
	return nil
}

// nextWith returns the next number above x that has the bit.
func nextWith(bit, x int) int { return (x + 1) | bit }
