package rmalloc

// A Kind is the meaning of a Flag.
type Kind uint8

const (
	// Data announces a block to read.
	Data Kind = 1
	// Close announces the end: no flag follows it.
	Close Kind = 2
	// Inline announces a block whose bytes lie behind the flag, in its entry of the
	// ring. The reader moves them to the block's place in the heap.
	Inline Kind = 3
)

// MostInline is the length of the largest block in an entry, in bytes: a cache line less
// the flag.
const MostInline = Granule - 8

// A Flag is the notification of a block: one word, written behind the block.
//
//	bits 56..63  lap of the flag ring
//	bits 54..55  kind
//	bits 30..53  offset in granules
//	bits  0..29  length in bytes
type Flag struct {
	Kind   Kind
	Offset int // granules
	Length int // bytes
}

const (
	lapShift = 56

	flagKindShift   = 54
	flagOffsetShift = 30
	flagKindMask    = 1<<(lapShift-flagKindShift) - 1
	flagOffsetMask  = 1<<(flagKindShift-flagOffsetShift) - 1
	flagLengthMask  = 1<<flagOffsetShift - 1
)

// Encode returns the flag's word for a lap of its ring. The fields fit their
// bits, as those of a Heap's blocks do.
func (f Flag) Encode(lap uint8) uint64 {
	return uint64(lap)<<lapShift | uint64(f.Kind)<<flagKindShift | uint64(f.Offset)<<flagOffsetShift | uint64(f.Length)
}

// decodeFlag is the inverse of Flag.Encode.
func decodeFlag(word uint64) Flag {
	return Flag{
		Kind:   Kind(word >> flagKindShift & flagKindMask),
		Offset: int(word >> flagOffsetShift & flagOffsetMask),
		Length: int(word & flagLengthMask),
	}
}

// fits reports whether the flag is valid in a heap of size bytes.
func (f Flag) fits(size int) bool {
	switch f.Kind {
	case Data:
		start := f.Offset * Granule
		return start < size && f.Length <= size-start
	case Inline:
		return f.Offset*Granule < size && f.Length <= MostInline
	case Close:
		return f.Offset == 0 && f.Length == 0
	}
	return false
}

// A FlagTaker is the reader's place in a ring of flags. Each entry of that ring
// is written in each lap.
type FlagTaker struct {
	Cursor
	size   int
	inline bool
}

// NewFlagTaker returns a taker at the start of a ring of width flags, for a
// heap of size bytes. inline: the ring's entries have room for blocks. Otherwise an Inline
// flag is Corrupt.
func NewFlagTaker(width, size int, inline bool) FlagTaker {
	return FlagTaker{NewCursor(width), size, inline}
}

// Take judges word, which the caller loaded from entry Index, and steps on if it
// is Ready.
func (t *FlagTaker) Take(word uint64) (Flag, Verdict) {
	verdict := t.judge(uint8(word >> lapShift))
	if verdict != Ready {
		return Flag{}, verdict
	}
	f := decodeFlag(word)
	if !f.fits(t.size) || f.Kind == Inline && !t.inline {
		return Flag{}, Corrupt
	}
	t.Step()
	return f, Ready
}

// Awaits reports whether word, loaded from entry Index, is still that of the lap
// before.
func (t *FlagTaker) Awaits(word uint64) bool { return uint8(word>>lapShift) == t.lap-1 }

// TakeData is Take of a word that announces a block of whole elements of size
// bytes. For any other word it returns false, and takes nothing.
func (t *FlagTaker) TakeData(word uint64, size int) (Flag, bool) {
	if word>>flagKindShift&^(uint64(Inline)-uint64(Data)) != uint64(t.Lap())<<(lapShift-flagKindShift)|uint64(Data) {
		return Flag{}, false
	}
	f := decodeFlag(word)
	if !f.fits(t.size) || size > 1 && f.Length%size != 0 || f.Kind == Inline && !t.inline {
		return Flag{}, false
	}
	t.Step()
	return f, true
}
