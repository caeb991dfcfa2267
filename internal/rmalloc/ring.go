package rmalloc

// A Verdict classifies a word that was loaded from a ring.
type Verdict uint8

const (
	// NotYet: the entry still holds the word of the lap before. Look again later.
	NotYet Verdict = iota
	// Ready: the entry is the next one, and valid.
	Ready
	// Skipped: the writer of the ring left the entry out. Look at the next one.
	Skipped
	// Corrupt: no writer that keeps the rules leaves such a word.
	Corrupt
)

// String returns the name.
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
// The first lap is 1; laps go round after 255 to 0. If the writer stores each
// entry in each lap, an entry holds the word of this lap or of the last one.
// Eight bits tell these two apart, and refuse most other words.
type Cursor struct {
	capacity int
	index    int
	count    uint64
	lap      uint8
}

// NewCursor returns a cursor at the start of a ring of capacity words, which is
// at least 1.
func NewCursor(capacity int) Cursor { return Cursor{capacity: capacity, lap: 1} }

// Index returns the next entry, counted from 0.
func (c *Cursor) Index() int { return c.index }

// Lap returns the lap of the next entry.
func (c *Cursor) Lap() uint8 { return c.lap }

// Count returns the number of entries behind the cursor, over all laps.
func (c *Cursor) Count() uint64 { return c.count }

// Left returns the number of entries up to the ring's end.
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
