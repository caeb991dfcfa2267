package rmalloc

// A Verdict says what a word is that was loaded from a ring.
type Verdict uint8

const (
	// NotYet: the entry still holds what it held a lap ago. Look again later.
	NotYet Verdict = iota
	// Ready: the entry is the next one, and valid.
	Ready
	// Skipped: its writer left the entry out. Look at the next one.
	Skipped
	// Corrupt: no writer that keeps the rules leaves such a word.
	Corrupt
)

func (v Verdict) String() string {
	switch v {
	case NotYet:
		return "not yet"
	case Ready:
		return "ready"
	case Skipped:
		return "skipped"
	}
	return "corrupt"
}

// A Cursor is a position in a ring of words, at either end of it.
//
// The first lap is 1; laps go round after 255 to 0. Where each entry is written
// in each lap, an entry holds the word of this lap or of the last one, and eight
// bits tell them apart from each other, and from most that is neither.
type Cursor struct {
	capacity int
	index    int
	count    uint64
	lap      uint8
}

// NewCursor returns a cursor at the start of a ring of capacity words, which is
// at least 1.
func NewCursor(capacity int) Cursor { return Cursor{capacity: capacity, lap: 1} }

// Index returns the entry that comes next, counted from 0.
func (c *Cursor) Index() int { return c.index }

// Lap returns the lap in which it comes.
func (c *Cursor) Lap() uint8 { return c.lap }

// Count returns how many entries lie behind, over all laps.
func (c *Cursor) Count() uint64 { return c.count }

// Left returns how many entries there are up to the ring's end.
func (c *Cursor) Left() int { return c.capacity - c.index }

// Step goes on by one entry.
func (c *Cursor) Step() { c.advance(1) }

// advance goes on by n entries, at most to the start of the next lap.
func (c *Cursor) advance(n int) {
	c.count += uint64(n)
	if c.index += n; c.index == c.capacity {
		c.index = 0
		c.lap++
	}
}

// judge compares the lap of a word with the one that the cursor expects.
func (c *Cursor) judge(lap uint8) Verdict {
	switch lap {
	case c.lap:
		return Ready
	case c.lap - 1:
		return NotYet
	}
	return Corrupt
}
