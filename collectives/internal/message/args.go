package message

import "github.com/gopgas/gopgas/internal/bulk"

// Args are the arguments of a collective call at one member, checked by the
// caller. All lengths, counts and offsets are in bytes and multiples of Elem.
//
//	                    Send                       Recv
//	Broadcast           -                          the data: read at the root, written elsewhere
//	Reduce              this member's vector       the result, at the root (unused elsewhere)
//	AllReduce           this member's vector       the result
//	Gather              this member's block        all blocks, at the root (unused elsewhere)
//	Scatter             all blocks, at the root    this member's block
//	AllGather           this member's block        all blocks
//	ReduceScatter       all blocks                 this member's block of the result
//	AllToAll            a block for each member    a block from each member
//	Scan                this member's vector       a0∘...∘a(rank)
//	ExScan              this member's vector       a0∘...∘a(rank-1); not written at member 0
//	NeighborAllGather  this member's block        a block from each edge in
//	NeighborAllToAll   a block for each edge out  a block from each edge in
//
// The call never changes Send, unless it is Recv: in the collectives of one
// vector they may be the same slice. If one of them is a block and the other
// holds all blocks, that block may be this member's own among all. AllToAll's do
// not overlap.
//
// A caller may use an Args again for another call; an algorithm changes nothing
// in it.
type Args struct {
	Root       int // Broadcast, Reduce, Gather, Scatter
	Elem       int // bytes of an element, at least 1
	Send, Recv []byte

	// Blocks of different lengths: block i of a buffer is the Counts[i] bytes at
	// Offsets[i]. Counts and offsets are both set or both nil; without them all
	// blocks have the same length and follow one another. They describe the
	// buffer of all blocks, and are the same at all members, with two exceptions.
	// In AllToAll each member has its own; Gather and Scatter by algorithms
	// without EveryCount read only the root's. Neighbors' blocks are those of
	// their edges, in the order of the lists.
	SendCounts, SendOffsets []int // Scatter, AllToAll, NeighborAllToAll
	RecvCounts, RecvOffsets []int // all collectives with blocks but Scatter

	Combine     Combine
	Commutative bool // the operator commutes: any order of combination will do
	Ordered     bool // combine exactly as ((a0∘a1)∘a2)∘..., even if the operator commutes

	Segment int // bytes of a step of pipelined algorithms; 0: DefaultSegment

	Hosts     *Hosts     // two-level algorithms: the members of each host
	Neighbors *Neighbors // neighborhood algorithms: the edges at this member

	// Scratch returns n bytes of any content, which the call owns until it
	// returns. See Arena.
	Scratch func(n int) []byte
}

// DefaultSegment is the step of pipelined algorithms without a Segment. It is so
// long that waking the receiver costs little beside moving it.
const DefaultSegment = 128 << 10

// segment returns the step of pipelined algorithms, in whole elements.
func (a *Args) segment() int {
	s := a.Segment
	if s <= 0 {
		s = DefaultSegment
	}
	return max(s/a.Elem, 1) * a.Elem
}

// inOrder reports whether the members' order determines that of combination.
func (a *Args) inOrder() bool { return !a.Commutative || a.Ordered }

// behind returns a Folding that combines a message behind this member's data: dst
// = own∘came.
func (a *Args) behind(dst, own []byte) Folding {
	return Folding{Dst: dst, Own: own, Combine: a.Combine, Elem: a.Elem}
}

// ahead returns one that combines it ahead of that data: dst = came∘own.
func (a *Args) ahead(dst, own []byte) Folding {
	return Folding{Dst: dst, Own: own, Left: true, Combine: a.Combine, Elem: a.Elem}
}

// copyTo copies src to dst, Recv or a part of it. It copies through the caches if they hold the
// output of all members. The member sends the bytes on from Recv, or the program reads them.
func (a *Args) copyTo(c Transport, dst, src []byte) {
	bulk.Copy(dst, src, bulk.Cached(c.Size(), len(a.Recv)))
}

// An Arena is memory for Args.Scratch. It grows to the need of calls and is then
// used again, so that calls allocate nothing in steady state. One goroutine at a
// time uses it; its zero value is ready.
type Arena struct {
	mem    []byte
	used   int
	wanted int // by this call so far
}

// Take returns n bytes of any content, valid until Reset.
func (s *Arena) Take(n int) []byte {
	s.wanted += n
	if s.used+n > len(s.mem) { // earlier slices stay valid
		s.mem, s.used = make([]byte, max(n, s.wanted)), 0
	}
	taken := s.mem[s.used : s.used+n : s.used+n]
	s.used += n
	return taken
}

// Reset takes all memory back: the next call may begin.
func (s *Arena) Reset() {
	if s.wanted > len(s.mem) {
		s.mem = make([]byte, s.wanted)
	}
	s.used, s.wanted = 0, 0
}
