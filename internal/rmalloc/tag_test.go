package rmalloc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRangeEncodesAsDocumented(t *testing.T) {
	require.EqualValues(t, uint64(0xAB_000000_00000000|0x123456<<25|0x1345678), Range{0x123456, 0x1345678}.Tag(0xAB))
	require.EqualValues(t, uint64(5<<56), SkipTag(5))
	r, verdict := judgeTag(Range{0, MaxGranules}.Tag(1), MaxGranules)
	require.Equal(t, Ready, verdict)
	require.Equal(t, Range{0, MaxGranules}, r)
}

func TestNextReturnsErrInvalidBeyondTheNumberOfBlocks(t *testing.T) {
	ring := NewTagRing(3)
	require.Equal(t, 6, ring.Capacity())
	for _, k := range []int{-1, 0, 4} {
		_, err := ring.Next(k)
		require.ErrorIs(t, err, ErrInvalid)
	}
	for _, want := range []Batch{{0, 1, 0}, {3, 1, 0}, {0, 2, 0}, {2, 2, 0}, {0, 3, 2}, {3, 3, 0}, {0, 4, 1}} {
		k := map[Batch]int{{0, 2, 0}: 2, {2, 2, 0}: 2, {3, 3, 0}: 2}[want]
		if k == 0 {
			k = 3
		}
		got, err := ring.Next(k)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.EqualValues(t, 3*6+3, ring.Tail())
}

// A batch that leaves entries out is seen by both kinds of takers.
func TestTakerSkipsEntriesThatTheWriterSkipped(t *testing.T) {
	const size = 16 * Granule
	one := Range{1, 1}
	byWords, byCounter := NewTagTaker(size, 3), NewTagTaker(size, 3)
	for range 4 { // entries 0 to 3 of lap 1
		_, verdict := byWords.Take(one.Tag(1))
		require.Equal(t, Ready, verdict)
		_, verdict = byCounter.TakeBelow(4, one.Tag(1))
		require.Equal(t, Ready, verdict)
	}
	index, n := byWords.Window(64)
	require.Equal(t, []int{4, 2}, []int{index, n})
	_, n = byWords.Window(1)
	require.Equal(t, 1, n)

	_, verdict := byWords.Take(0)
	require.Equal(t, NotYet, verdict)
	for range 2 {
		_, verdict = byWords.Take(SkipTag(1))
		require.Equal(t, Skipped, verdict)
	}
	require.Zero(t, byWords.Index())
	_, verdict = byWords.Take(one.Tag(2))
	require.Equal(t, Ready, verdict)

	_, verdict = byCounter.TakeBelow(4, one.Tag(1))
	require.Equal(t, NotYet, verdict, "nothing is announced, whatever lies there")
	_, verdict = byCounter.TakeBelow(6, 0)
	require.Equal(t, Corrupt, verdict, "no batch follows the entries left out: a tag is missing")
	_, verdict = byCounter.TakeBelow(9, 0)
	require.Equal(t, Skipped, verdict)
	require.Zero(t, byCounter.Index())
	_, verdict = byCounter.TakeBelow(9, 0)
	require.Equal(t, Corrupt, verdict, "no lap is left out from its start on")
	_, verdict = byCounter.TakeBelow(9, one.Tag(2))
	require.Equal(t, Ready, verdict)
}

func TestTagTakerReportsImpossibleWordsAndCountersAsCorrupt(t *testing.T) {
	const size = 16 * Granule
	good := Range{15, 1}.Tag(1)
	for _, word := range []uint64{
		Range{15, 2}.Tag(1), Range{16, 1}.Tag(1), Range{0, 17}.Tag(1), Range{1, 0}.Tag(1), good | 1<<49, good | 1<<55,
		Range{15, 1}.Tag(2), Range{15, 1}.Tag(255), SkipTag(3), ^uint64(0),
	} {
		taker := NewTagTaker(size, 3)
		_, verdict := taker.Take(word)
		require.Equal(t, Corrupt, verdict, "%#x", word)
		_, verdict = taker.TakeBelow(1, word)
		require.Equal(t, Corrupt, verdict, "%#x", word)
		require.Zero(t, taker.Index())
	}
	for _, tail := range []uint32{7, 1 << 31, 1<<32 - 1} {
		taker := NewTagTaker(size, 3)
		_, verdict := taker.TakeBelow(tail, good)
		require.Equal(t, Corrupt, verdict, "tail %d", tail)
	}
	taker := NewTagTaker(size, 3)
	_, verdict := taker.TakeBelow(1, SkipTag(1))
	require.Equal(t, Corrupt, verdict, "skips are zeros for a taker by counter")
}

func TestTagCounterWrapsAround(t *testing.T) {
	ring, taker := NewTagRing(1), NewTagTaker(Granule, 1)
	ring.cursor.count, taker.cursor.count = 1<<32-2, 1<<32-2
	for range 5 {
		b, err := ring.Next(1)
		require.NoError(t, err)
		_, verdict := taker.TakeBelow(ring.Tail(), Range{0, 1}.Tag(b.Lap))
		require.Equal(t, Ready, verdict)
	}
	require.EqualValues(t, 3, ring.Tail())
}

func TestVerdictsHaveNames(t *testing.T) {
	require.Equal(t, "not yet ready skipped corrupt", NotYet.String()+" "+Ready.String()+" "+Skipped.String()+" "+Corrupt.String())
}

// FuzzTag lets the input play the ring, by words and by counter. For any input, a
// taker steps on only by the entries that it took, and takes only ranges of the
// heap.
func FuzzTag(f *testing.F) {
	f.Add(uint64(0), uint32(0), uint8(0))
	f.Add(Range{3, 4}.Tag(1), uint32(1), uint8(1))
	f.Add(SkipTag(1), uint32(4), uint8(9))
	f.Add(Range{15, 1}.Tag(3), uint32(40), uint8(20))
	f.Fuzz(func(t *testing.T, word uint64, tail uint32, steps uint8) {
		const total, blocks = 16, 5
		words := NewTagTaker(total*Granule, blocks)
		for range steps {
			words.cursor.Step()
		}
		counter := words
		lap, behind := words.cursor.Lap(), words.cursor.Count()

		r, verdict := words.Take(word)
		stepped := words.cursor.Count() - behind
		switch verdict {
		case Ready:
			require.Equal(t, word, r.Tag(lap), "each bit has a meaning")
			require.True(t, r.Offset >= 0 && r.Count > 0 && r.end() <= total)
			require.EqualValues(t, 1, stepped)
		case Skipped:
			require.Equal(t, SkipTag(lap), word)
			require.EqualValues(t, 1, stepped)
		default:
			require.Zero(t, stepped)
		}

		again, below := counter.TakeBelow(tail, word)
		stepped = counter.cursor.Count() - behind
		require.LessOrEqual(t, stepped, uint64(tail-uint32(behind)), "never beyond the count")
		switch below {
		case Ready:
			require.Equal(t, Ready, verdict)
			require.Equal(t, r, again)
			require.EqualValues(t, 1, stepped)
		case Skipped:
			require.Zero(t, word)
			require.Zero(t, counter.Index())
		default:
			require.Zero(t, stepped)
		}
	})
}
