package pipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// tagWindow is how many tags one read fetches.
const tagWindow = 64

// fetchedTags is immediate synchronization at the writer: the ring of tags lies
// at the reader, and each take reads the next tags there.
type fetchedTags struct {
	w      *Writer
	taker  rmalloc.TagTaker
	window []byte
}

// Take is one read, or, where the reader is mapped, some loads.
func (t *fetchedTags) Take(ctx context.Context) error {
	_, err := t.fetch(ctx)
	return err
}

// fetch takes what one look at the ring shows. It is true when that was all tags,
// so that more of them may follow.
func (t *fetchedTags) fetch(ctx context.Context) (more bool, err error) {
	w := t.w
	if err := w.TakeCredit(); err != nil {
		return false, err
	}
	if remote := w.Remote(); remote != nil {
		ring := remote[w.tagsAt():]
		for more = true; more; {
			if more, err = t.Settle(atomics.Word64(ring[8*t.taker.Index():]).Load()); err != nil {
				return false, err
			}
		}
		return false, nil
	}
	index, n := t.taker.Window(tagWindow)
	window := t.window[:8*n]
	if tries(ctx) {
		brief, cancel := aMoment()
		defer cancel()
		ctx = brief
	}
	if err := w.Get(ctx, w.tagsAt()+8*index, window); err != nil {
		return false, err
	}
	for ; len(window) > 0; window = window[8:] {
		if more, err := t.Settle(native.Uint64(window)); !more || err != nil {
			return false, err
		}
	}
	return true, nil
}

// Settle takes one tag. It is false when there are no more.
func (t *fetchedTags) Settle(word uint64) (more bool, err error) {
	r, verdict := t.taker.Take(word)
	switch verdict {
	case rmalloc.NotYet:
		return false, nil
	case rmalloc.Corrupt:
		return false, t.w.Breaks(errBadTag)
	case rmalloc.Ready:
		err = t.w.reclaim(r)
	}
	return err == nil, err
}

// TakeBehind reads behind the word that this end waits: the reader has either published
// a tag before, which is read, or sees the word as it does. It reads all of those
// tags, however many windows they fill: a reader with nothing to announce sends no credit.
func (t *fetchedTags) TakeBehind(ctx context.Context) error {
	if err := t.w.Flush(ctx); err != nil {
		return err
	}
	for more := true; more; {
		var err error
		if more, err = t.fetch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// publisher is immediate synchronization at the reader: each tag is stored in
// this end's own ring.
type publisher struct {
	entries []byte // the ring
	ring    rmalloc.TagRing
}

// Free stores the tag of a range in the ring.
func (p *publisher) Free(r rmalloc.Range) error {
	batch, err := p.ring.Next(1)
	if err == nil {
		atomics.Word64(p.entries[8*batch.Index:]).Store(r.Tag(batch.Lap))
	}
	return err
}

// pressing: the writer looks by itself.
func (p *publisher) pressing(*Spec) bool { return false }

// owes: all tags lie in the ring.
func (p *publisher) owes() bool { return false }

// pack returns the count of tags alone: the writer reads them itself.
func (p *publisher) pack() (at int, words []byte, tail uint32, err error) {
	return 0, nil, p.ring.Tail(), nil
}
