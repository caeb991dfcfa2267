package rmalloc

import "fmt"

// A TagRing says where the next tags go in the ring that brings them from a
// pipe's reader back to its writer. The tags of a batch lie in a row, so that one
// remote write carries them; where they would reach beyond the ring's end, the
// entries up to there are left out, and the batch begins the next lap.
//
//	lap n    | t t t t t t t t t . . . |   3 entries were left: a batch of 5
//	lap n+1  | 5 5 5 5 5               |   leaves them out
//
// # It cannot overflow
//
// A ring for B blocks has 2 x B entries. A tag that was not taken yet stands
// for a block at least, which cannot be live again before, so there are at most
// B of them, those of a new batch included; the entries left out for a batch of
// k are fewer than k. Together they are fewer than 2 x B: nothing is overwritten
// that was not taken.
//
// # Two ways to know what is there
//
// By a counter: the ring lies at the taker, and each batch is followed by the
// new count of all entries (TagRing.Tail). Below it everything has arrived. The
// taker clears each entry it takes, so that an entry which was left out is
// zero whatever was there laps ago, and TakeBelow goes on to the next lap.
//
// By the words alone: the ring lies at its writer, who stores into it, and the
// taker fetches a piece now and then. There the entries left out (none, if tags
// are published one by one) must hold SkipTag: then each entry is written in
// each lap, a word is of this lap or of the last, and Take needs no counter.
type TagRing struct {
	cursor Cursor
	blocks int
}

// NewTagRing returns the start of a ring for a heap of blocks blocks.
func NewTagRing(blocks int) TagRing {
	return TagRing{NewCursor(tagRingCapacity(blocks)), blocks}
}

// Capacity returns how many words the ring has.
func (r *TagRing) Capacity() int { return r.cursor.capacity }

// A Batch is the place of some tags in a row.
type Batch struct {
	Index int   // of the first entry
	Lap   uint8 // of all of them

	// The last Skipped entries of the lap before were left out. In a ring that is
	// taken by words alone they must hold SkipTag(Lap-1).
	Skipped int
}

// Next returns the place of the next k tags, and counts them as written.
// ErrInvalid: no batch is so large, since there are not so many blocks.
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

// Tail returns how many entries lie behind, left out ones included, modulo 2^32:
// what a taker by counter needs to know.
func (r *TagRing) Tail() uint32 { return uint32(r.cursor.Count()) }

func tagRingCapacity(blocks int) int { return 2 * blocks }

// A TagTaker is the place in a tag ring up to which tags were taken. It works by
// Take or by TakeBelow, not by both in turn.
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

// Window returns a piece of the ring to fetch, beginning with the entry that
// comes next: n entries in a row, at most limit.
func (t *TagTaker) Window(limit int) (index, n int) {
	return t.cursor.Index(), min(limit, t.cursor.Left())
}

// Take says what word is, which was loaded from entry Index, by the word alone.
// It steps on when that is Ready or Skipped.
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

// Reached tells that everything below tail was taken: there is nothing to load.
func (t *TagTaker) Reached(tail uint32) bool { return tail == uint32(t.cursor.Count()) }

// TakeBelow says what word is, which was loaded from entry Index, if tail is the
// count that its writer has announced. When it is Ready, the caller clears the
// entry, and the taker has stepped on; when it is Skipped, the taker stands at
// the next lap's start. At tail it is NotYet, whatever the word.
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

// skip goes to the next lap, if something lies there: else nothing was left out
// for it. (So no whole lap is skipped: nothing can lie behind that.)
func (t *TagTaker) skip(ahead int) Verdict {
	left := t.cursor.Left()
	if ahead <= left {
		return Corrupt
	}
	t.cursor.advance(left)
	return Skipped
}
