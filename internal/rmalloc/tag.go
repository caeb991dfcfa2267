package rmalloc

// A tag is the word of a freed Range:
//
//	bits 56..63  lap of the tag ring
//	bits 49..55  zero
//	bits 25..48  offset in granules
//	bits  0..24  count of granules; 0 with offset 0 is a skip
const (
	tagOffsetShift = 25
	tagOffsetMask  = 1<<24 - 1
	tagCountMask   = 1<<tagOffsetShift - 1
	tagSpareMask   = 1<<lapShift - 1<<(tagOffsetShift+24)
)

// Tag returns the word of a range for a lap of its ring.
func (r Range) Tag(lap uint8) uint64 {
	return uint64(lap)<<lapShift | uint64(r.Offset)<<tagOffsetShift | uint64(r.Count)
}

// SkipTag returns the word of a skipped entry.
func SkipTag(lap uint8) uint64 { return Range{}.Tag(lap) }

func decodeTag(word uint64) Range {
	return Range{Offset: int(word >> tagOffsetShift & tagOffsetMask), Count: int(word & tagCountMask)}
}

// judgeTag classifies a word of the expected lap, in a heap of total granules.
func judgeTag(word uint64, total int) (Range, Verdict) {
	r := decodeTag(word)
	switch {
	case word&tagSpareMask != 0:
		return Range{}, Corrupt
	case r == Range{}:
		return r, Skipped
	case r.Count == 0 || r.end() > total:
		return Range{}, Corrupt
	}
	return r, Ready
}
