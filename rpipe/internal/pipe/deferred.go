package pipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// announcedTags is deferred synchronization at the writer: the ring of tags lies
// here, the reader puts into it, and the credit that comes behind says how many
// there are.
type announcedTags struct {
	w     *Writer
	taker rmalloc.TagTaker
}

// Take releases the ranges of all tags below the credit.
func (t *announcedTags) Take(context.Context) error {
	w := t.w
	if err := w.TakeCredit(); err != nil {
		return err
	}
	tail := uint32(w.Credit >> 32)
	if t.taker.Reached(tail) {
		return nil
	}
	ring := w.Data[w.tagsAt():]
	for !t.taker.Reached(tail) { // entries beyond may be on their way
		entry := atomics.Word64(ring[8*t.taker.Index():])
		r, verdict := t.taker.TakeBelow(tail, entry.Load())
		switch verdict {
		case rmalloc.Corrupt:
			return w.Breaks(errBadTag)
		case rmalloc.Ready:
			entry.Store(0)
			if err := w.reclaim(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// TakeBehind posts nothing: the reader announces freed ranges.
func (t *announcedTags) TakeBehind(context.Context) error { return nil }

// pendingTags is deferred synchronization at the reader: freed ranges wait in a
// sorted list, where neighbors become one, until it is announced in one write.
type pendingTags struct {
	pending *rmalloc.Pending
	ring    rmalloc.TagRing
	ranges  []rmalloc.Range
	words   []byte
}

// Free adds a range to those that wait for an announcement.
func (a *pendingTags) Free(r rmalloc.Range) error { return a.pending.Insert(r.Offset, r.Count) }

// pressing reports whether a quarter of the heap, or half of its blocks, is not announced.
func (a *pendingTags) pressing(s *Spec) bool {
	return a.pending.Granules()*rmalloc.Granule >= s.Heap/4 || a.pending.Blocks() >= max(s.blocks/2, 1)
}

// owes reports whether a range is not announced.
func (a *pendingTags) owes() bool { return a.pending.Len() > 0 }

// pack returns the tags of all that is pending, and where in the ring they go.
func (a *pendingTags) pack() (at int, words []byte, tail uint32, err error) {
	if a.pending.Len() == 0 {
		return 0, nil, a.ring.Tail(), nil
	}
	a.ranges = a.pending.Drain(a.ranges[:0])
	batch, err := a.ring.Next(len(a.ranges))
	if err != nil {
		return 0, nil, 0, err
	}
	a.words = a.words[:0]
	for _, r := range a.ranges {
		a.words = native.AppendUint64(a.words, r.Tag(batch.Lap))
	}
	return 8 * batch.Index, a.words, a.ring.Tail(), nil
}
