package rmalloc

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A loop is a pipe's books at both ends with a tag ring between them, and plain
// memory for wires.
type loop struct {
	heap  *Heap
	taker TagTaker
	words []uint64
	tail  uint32 // the counter, as the taker sees it

	held    *Held
	pending *Pending
	ring    TagRing
	flags   []Flag
	inHand  []Addr

	untaken []bool // of the ring's entries: written and not taken
}

func newLoop(t *rapid.T) *loop {
	size := Granule * rapid.IntRange(1, 60).Draw(t, "granules")
	blocks := rapid.IntRange(1, 12).Draw(t, "blocks")
	policy := policies[rapid.IntRange(0, len(policies)-1).Draw(t, "policy")]
	h, err := New(Config{Size: size, Blocks: blocks, Policy: policy})
	require.NoError(t, err)
	l := &loop{
		heap: h, taker: NewTagTaker(size, blocks),
		held: newHeld(t, size, blocks), pending: NewPending(blocks), ring: NewTagRing(blocks),
	}
	l.words, l.untaken = make([]uint64, l.ring.Capacity()), make([]bool, l.ring.Capacity())
	return l
}

// send fills the heap and sends all its blocks.
func (l *loop) send(t *rapid.T) {
	for range rapid.IntRange(1, 6).Draw(t, "sends") {
		a, err := l.heap.Alloc(rapid.IntRange(0, 4*Granule).Draw(t, "length"))
		if err != nil {
			return
		}
		offset, length, err := l.heap.Range(a)
		require.NoError(t, err)
		require.NoError(t, l.heap.Send(a))
		l.flags = append(l.flags, Flag{Data, offset / Granule, length})
	}
}

func (l *loop) read(t *rapid.T) {
	for _, f := range l.flags {
		a, err := l.held.Take(f.Offset, f.Length)
		require.NoError(t, err)
		l.inHand = append(l.inHand, a)
	}
	l.flags = l.flags[:0]
}

func (l *loop) free(t *rapid.T) {
	for range min(rapid.IntRange(1, 6).Draw(t, "frees"), len(l.inHand)) {
		i := rapid.IntRange(0, len(l.inHand)-1).Draw(t, "which")
		r, err := l.held.Free(l.inHand[i])
		require.NoError(t, err)
		require.NoError(t, l.pending.Insert(r.Offset, r.Count))
		l.inHand = append(l.inHand[:i], l.inHand[i+1:]...)
	}
}

// publish writes all pending tags; words reports whether the taker uses the words
// alone.
func (l *loop) publish(t *rapid.T, words bool) {
	if l.pending.Len() == 0 {
		return
	}
	ranges := l.pending.Drain(nil)
	batch, err := l.ring.Next(len(ranges))
	require.NoError(t, err)
	if words {
		for i := range batch.Skipped {
			l.write(t, len(l.words)-batch.Skipped+i, SkipTag(batch.Lap-1))
		}
	}
	for i, r := range ranges {
		l.write(t, batch.Index+i, r.Tag(batch.Lap))
	}
	l.tail = l.ring.Tail()
}

func (l *loop) write(t *rapid.T, i int, word uint64) {
	require.False(t, l.untaken[i], "entry %d is overwritten before it was taken", i)
	l.words[i], l.untaken[i] = word, true
}

// look takes the next entry, by its word or by the counter.
func (l *loop) look(words bool) (Range, Verdict) {
	word := l.words[l.taker.Index()]
	if words {
		return l.taker.Take(word)
	}
	return l.taker.TakeBelow(l.tail, word)
}

// take takes up to limit tags.
func (l *loop) take(t *rapid.T, words bool, limit int) {
	for range limit {
		i := l.taker.Index()
		r, verdict := l.look(words)
		require.NotEqual(t, Corrupt, verdict)
		switch verdict {
		case NotYet:
			require.False(t, l.untaken[i])
			return
		case Skipped:
			l.untaken[i] = false
			continue
		}
		require.True(t, l.untaken[i])
		l.untaken[i] = false
		if !words {
			l.words[i] = 0
		}
		require.NoError(t, l.heap.Release(r.Offset, r.Count))
	}
}

func TestTagTakerReturnsEachFreedBlockOnce(t *testing.T) {
	for name, words := range map[string]bool{"words": true, "counter": false} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				l := newLoop(t)
				publish := func(t *rapid.T) { l.publish(t, words) }
				t.Repeat(map[string]func(*rapid.T){
					"send": l.send, "read": l.read, "free": l.free, "free2": l.free,
					"publish": publish,
					"take":    func(t *rapid.T) { l.take(t, words, rapid.IntRange(1, 30).Draw(t, "limit")) },
				})
				l.read(t)
				for len(l.inHand) > 0 {
					l.free(t)
				}
				l.publish(t, words)
				l.take(t, words, 1000)
				require.Zero(t, l.heap.Stats().Blocks)
				require.Zero(t, l.held.Len())
			})
		})
	}
}

// A writer can skip an entry for so many laps that the number of the lap of its
// last tag comes again. That tag must not count then.
func TestEntrySkippedFor256LapsHoldsNoTag(t *testing.T) {
	for _, words := range []bool{true, false} {
		l := loop{ring: NewTagRing(2), taker: NewTagTaker(16*Granule, 2), words: make([]uint64, 4)}
		var sent, taken []Range
		for lap := range 600 {
			for _, k := range map[bool][]int{true: {2, 2}, false: {2, 1}}[lap%300 == 0] {
				batch, err := l.ring.Next(k)
				require.NoError(t, err)
				if words && batch.Skipped > 0 {
					l.words[3] = SkipTag(batch.Lap - 1)
				}
				for i := range k {
					r := Range{len(sent) % 13, 1}
					l.words[batch.Index+i] = r.Tag(batch.Lap)
					sent = append(sent, r)
				}
				l.tail = l.ring.Tail()
				taken = l.drain(t, words, taken)
			}
		}
		require.Equal(t, sent, taken)
	}
}

// drain takes all that lies in the ring.
func (l *loop) drain(t *testing.T, words bool, taken []Range) []Range {
	t.Helper()
	for {
		i := l.taker.Index()
		r, verdict := l.look(words)
		switch verdict {
		case NotYet:
			return taken
		case Ready:
			taken = append(taken, r)
			if !words {
				l.words[i] = 0
			}
		default:
			require.Equal(t, Skipped, verdict)
		}
	}
}
