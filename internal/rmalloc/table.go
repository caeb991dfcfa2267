package rmalloc

import "math/bits"

// A span describes a piece of the heap: a block, or a hole between blocks.
type span struct {
	addr  Addr   // its place; a hole has generation 0
	count uint32 // granules
	bytes uint32 // a block's payload, with sentBit

	prev, next    int32 // neighbors in address order; next also links unused slots
	before, after int32 // a hole: the holes around it; a block: after is next in its bucket
}

// sentBit marks a block, in span.bytes, that belongs to the reader. MaxBlock
// leaves the bit free.
const sentBit = 1 << 31

func (s *span) hole() bool { return s.addr&generationMask == 0 }

// A table holds spans in slots that it uses again, and finds blocks by their
// first granule: a hash table chained through the spans. The type that embeds the
// table owns slot 0; as the end of every chain, 0 means "none".
type table struct {
	spans   []span
	buckets []int32
	unused  int32 // slots to use again, linked by next
	shift   uint8 // 32 - log2(len(buckets))
	limit   int   // largest number of slots
}

// newTable returns a table of up to limit spans. Span 0 stands for none.
func newTable(limit int) table {
	t := table{limit: limit}
	t.resize(min(4, limit))
	t.spans = t.spans[:1]
	return t
}

// slot returns an unused slot. Pointers into spans do not survive it.
func (t *table) slot() int32 {
	if i := t.unused; i != 0 {
		t.unused = t.spans[i].next
		return i
	}
	n := len(t.spans)
	if n == cap(t.spans) {
		t.resize(min(2*n, t.limit))
	}
	t.spans = t.spans[:n+1]
	return int32(n)
}

// drop gives a slot back.
func (t *table) drop(i int32) {
	t.spans[i] = span{next: t.unused}
	t.unused = i
}

// resize moves all spans into room for n. Its caller has used all slots.
func (t *table) resize(n int) {
	spans := make([]span, len(t.spans), n)
	copy(spans, t.spans)
	t.spans = spans
	lg := bits.Len(uint(n-1) / 2) // buckets for half as many slots, up to twice that
	t.buckets, t.shift = make([]int32, 1<<lg), uint8(32-lg)
	for i := 1; i < len(spans); i++ {
		if !spans[i].hole() {
			t.enter(int32(i))
		}
	}
}

// bucket spreads granules by Fibonacci hashing (Knuth, TAOCP vol. 3, section
// 6.4), under which neighbors do not collide.
func (t *table) bucket(granule uint32) *int32 {
	return &t.buckets[granule*0x9E3779B1>>t.shift]
}

// enter records block i under its first granule.
func (t *table) enter(i int32) {
	s := &t.spans[i]
	head := t.bucket(s.addr.granule())
	s.after, *head = *head, i
}

// remove removes that record of block i.
func (t *table) remove(i int32) {
	s := &t.spans[i]
	link := t.bucket(s.addr.granule())
	for *link != i {
		link = &t.spans[*link].after
	}
	*link = s.after
}

// find returns the block that begins at granule, or 0.
func (t *table) find(granule uint32) int32 {
	i := *t.bucket(granule)
	for i != 0 && t.spans[i].addr.granule() != granule {
		i = t.spans[i].after
	}
	return i
}

// lookup returns the block of that address and generation, or 0.
func (t *table) lookup(a Addr) int32 {
	if i := t.find(a.granule()); t.spans[i].addr == a {
		return i
	}
	return 0
}

// memory returns the bytes that the table occupies.
func (t *table) memory() int { return 32*cap(t.spans) + 4*cap(t.buckets) }
