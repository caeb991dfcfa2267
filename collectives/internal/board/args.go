package board

// A Combine computes dst = left ∘ right, element by element. All three have the
// same length, and dst may be left or right itself.
type Combine = func(dst, left, right []byte)

// Args are the arguments of a collective call at one member, checked by the
// caller. All lengths, counts and offsets are in bytes and multiples of Elem.
//
//	               Send                          Recv
//	Broadcast      -                             the data: read at the root, written elsewhere
//	Reduce         this member's vector          the result, at the root (unused elsewhere)
//	AllReduce      this member's vector          the result
//	Gather         this member's block           all blocks, at the root (unused elsewhere)
//	Scatter        all blocks, at the root       this member's block
//	AllGather      this member's block           all blocks
//	ReduceScatter  all blocks                    this member's block of the result
//	AllToAll       a block for each member       a block from each member
//	Scan           this member's vector          a0∘...∘a(rank)
//	ExScan         this member's vector          a0∘...∘a(rank-1); not written at member 0
//
// The call never changes Send, unless it is Recv: in the collectives of one
// vector they may be the same slice. If one of them is a block and the other
// holds all blocks, that block may be this member's own among all. AllToAll's do
// not overlap.
type Args struct {
	Root       int // Broadcast, Reduce, Gather, Scatter
	Elem       int // bytes of an element, at least 1
	Send, Recv []byte

	// Places of Send and Recv, for calls on memory that all members map.
	SendAt, RecvAt Place

	// Blocks of different lengths: block i of a buffer is the Counts[i] bytes at
	// Offsets[i]. Counts and offsets are both set or both nil; without them all
	// blocks have the same length and follow one another. Those of AllGather and
	// ReduceScatter are the same at all members. The root alone reads those of
	// GatherV and ScatterV, and each member of AllToAllV has its own.
	SendCounts, SendOffsets []int // ScatterV, AllToAllV
	RecvCounts, RecvOffsets []int // GatherV, AllGather, ReduceScatter, AllToAllV

	Combine   Combine
	ByProgram bool // Combine belongs to the program, and may take any time
	Single    bool // Combine calls a function for each element; the same at all members
}

// A Place is memory of a member by the name that other members know. Region 0 is
// memory that the other members do not map.
type Place struct{ Region, Offset uint64 }

// A table finds the blocks of a buffer.
type table struct {
	buf             []byte
	each            int // the length of each block, without counts
	counts, offsets []int
}

// len returns the length of block i, in bytes.
func (t *table) len(i int) int {
	if t.counts == nil {
		return t.each
	}
	return t.counts[i]
}

// offset returns the place of block i, in bytes.
func (t *table) offset(i int) int {
	if t.counts == nil {
		return i * t.each
	}
	return t.offsets[i]
}

// chunk returns chunk number c of block i.
func (t *table) chunk(i, c, size int) []byte {
	from := min(c*size, t.len(i))
	return t.buf[t.offset(i):][from:min(from+size, t.len(i))]
}

func (t *table) block(i int) []byte { return t.buf[t.offset(i):][:t.len(i)] }

// longest returns the length of the longest of n blocks.
func (t *table) longest(n int) int {
	if t.counts == nil {
		return t.each
	}
	longest := 0
	for _, c := range t.counts[:n] {
		longest = max(longest, c)
	}
	return longest
}

func (a *Args) sendTable(each int) table {
	return table{a.Send, each, a.SendCounts, a.SendOffsets}
}

func (a *Args) recvTable(each int) table {
	return table{a.Recv, each, a.RecvCounts, a.RecvOffsets}
}
