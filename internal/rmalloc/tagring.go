package rmalloc

import "fmt"

// A TagRing gives the next tags their entries in the ring that carries them from
// a pipe's reader back to its writer. The tags of a batch lie in a row, so that
// one remote write carries them. If they would reach beyond the ring's end, the
// batch skips the entries up to there and begins the next lap.
//
//	lap n    | t t t t t t t t t . . . |   3 entries were left: a batch of 5
//	lap n+1  | 5 5 5 5 5               |   leaves them out
//
// # It cannot overflow
//
// A ring for B blocks has 2 x B entries. A tag that was not taken stands for at
// least one block, which cannot be live again before. So the ring has at most B
// such tags, a new batch included. A batch of k skips fewer than k entries.
// Together they are fewer than 2 x B: no tag is overwritten before the writer
// takes it.
//
// # Two ways to know what is there
//
// By a counter: the ring lies at the taker, and each batch is followed by the new
// count of all entries (TagRing.Tail). All entries below it have arrived. The
// taker clears each entry that it takes. So a skipped entry is zero, and
// TakeBelow goes on to the next lap.
//
// By the words alone: the ring lies at its writer, which stores into it, and the
// taker fetches a piece now and then. Skipped entries (none, if tags are
// published one by one) must then hold SkipTag. So the writer stores each entry
// in each lap, a word is of this lap or of the last, and Take needs no counter.
type TagRing struct {
	cursor Cursor
	blocks int
}

// NewTagRing returns the start of a ring for a heap of blocks blocks.
func NewTagRing(blocks int) TagRing {
	return TagRing{NewCursor(tagRingCapacity(blocks)), blocks}
}

// Capacity returns the number of words in the ring.
func (r *TagRing) Capacity() int { return r.cursor.capacity }

// A Batch is the place of some tags in a row.
type Batch struct {
	Index int   // of the first tag
	Lap   uint8 // of all tags

	// The batch skips the last Skipped entries of the lap before. In a ring that
	// is read by words alone they must hold SkipTag(Lap-1).
	Skipped int
}

// Next returns the place of the next k tags, and counts them as written.
// ErrInvalid: the heap has fewer than k blocks.
func (r *TagRing) Next(k int) (Batch, error) {
	if k < 1 || k > r.blocks {
		return Batch{}, fmt.Errorf("%w: %d tags at once in a ring for %d blocks", ErrInvalid, k, r.blocks)
	}
	skipped := 0
	if left := r.cursor.Left(); left < k {
		skipped = left
		r.cursor.advance(left)
	}
	b := Batch{Index: r.cursor.Index(), Lap: r.cursor.Lap(), Skipped: skipped}
	r.cursor.advance(k)
	return b, nil
}

// Tail returns the count of all entries so far, skipped ones included, modulo
// 2^32, for a taker by counter.
func (r *TagRing) Tail() uint32 { return uint32(r.cursor.Count()) }

func tagRingCapacity(blocks int) int { return 2 * blocks }

// A TagTaker is the place in a tag ring up to which the writer of a pipe has
// taken tags. It works by Take or by TakeBelow, not by both in turn.
type TagTaker struct {
	cursor Cursor
	total  int
}

// NewTagTaker returns a taker at the start of a ring for a heap of size bytes
// with blocks blocks.
func NewTagTaker(size, blocks int) TagTaker {
	return TagTaker{NewCursor(tagRingCapacity(blocks)), size / Granule}
}

// Index returns the entry to load next.
func (t *TagTaker) Index() int { return t.cursor.Index() }

// Window returns a piece of the ring to fetch: n entries in a row from the next
// one on, at most limit.
func (t *TagTaker) Window(limit int) (index, n int) {
	return t.cursor.Index(), min(limit, t.cursor.Left())
}

// Take judges word, which the caller loaded from entry Index, by the word alone.
// It steps on if the word is Ready or Skipped.
func (t *TagTaker) Take(word uint64) (Range, Verdict) {
	if verdict := t.cursor.judge(uint8(word >> lapShift)); verdict != Ready {
		return Range{}, verdict
	}
	r, verdict := judgeTag(word, t.total)
	if verdict != Corrupt {
		t.cursor.Step()
	}
	return r, verdict
}

// Reached reports whether all entries below tail were taken: then there is
// nothing to load.
func (t *TagTaker) Reached(tail uint32) bool { return tail == uint32(t.cursor.Count()) }

// TakeBelow judges word, which the caller loaded from entry Index, if tail is the
// count that the ring's writer has announced. If it is Ready, the taker has
// stepped on, and the caller clears the entry. If it is Skipped, the taker stands
// at the next lap's start. At tail it returns NotYet for every word.
func (t *TagTaker) TakeBelow(tail uint32, word uint64) (Range, Verdict) {
	ahead := int(tail - uint32(t.cursor.Count()))
	switch {
	case ahead == 0:
		return Range{}, NotYet
	case ahead > t.cursor.capacity:
		return Range{}, Corrupt
	case word == 0:
		return Range{}, t.skip(ahead)
	case uint8(word>>lapShift) != t.cursor.Lap():
		return Range{}, Corrupt
	}
	r, verdict := judgeTag(word, t.total)
	if verdict != Ready {
		return Range{}, Corrupt
	}
	t.cursor.Step()
	return r, Ready
}

// skip goes to the next lap if tail lies there; otherwise the writer skipped
// nothing. (So it skips no whole lap: tail cannot lie behind that.)
func (t *TagTaker) skip(ahead int) Verdict {
	left := t.cursor.Left()
	if ahead <= left {
		return Corrupt
	}
	t.cursor.advance(left)
	return Skipped
}
