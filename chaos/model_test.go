package chaos

import "slices"

// An effect is the effect of a step on its target.
type effect int

const (
	none  effect = iota // it did nothing
	maybe               // it took effect in full, in part or not at all
	sure                // it took effect
)

// A cell is some elements of one target that one origin alone writes, all with the same
// value. After a canceled put its elements may differ.
type cell struct {
	settled []int64 // possible values at the last order point
	recent  []write // writes since; the target may apply them in any order
}

type write struct {
	value  int64
	effect effect
}

func newCell() *cell { return &cell{settled: []int64{0}} }

func (c *cell) wrote(v int64, e effect) {
	if e != none {
		c.recent = append(c.recent, write{v, e})
	}
}

// order moves the order point behind all writes so far.
func (c *cell) order() {
	if slices.ContainsFunc(c.recent, func(w write) bool { return w.effect == sure }) {
		c.settled = nil
	}
	for _, w := range c.recent {
		c.settled = append(c.settled, w.value)
	}
	c.recent = nil
}

// allows reports whether an element of the cell may hold v.
func (c *cell) allows(v int64) bool {
	return slices.Contains(c.settled, v) ||
		slices.ContainsFunc(c.recent, func(w write) bool { return w.value == v })
}

// saw tells the cell that all its elements hold v, with no write after the last order point.
func (c *cell) saw(v int64) {
	if len(c.recent) == 0 {
		c.settled = []int64{v}
	}
}

// A word is one element that one origin alone updates, by atomics. They keep
// their order.
type word []int64

// applied tells the word that update may have been, or was, applied.
func (w *word) applied(e effect, update func(int64) int64) {
	var after word
	for _, v := range *w {
		after = append(after, update(v))
	}
	switch e {
	case sure:
		*w = after
	case maybe:
		*w = append(*w, after...)
	}
	slices.Sort(*w)
	*w = slices.Compact(*w)
}

// An eventCount bounds the number of events at one target.
type eventCount struct{ Sure, Maybe int64 }

func (t *eventCount) count(e effect) {
	switch e {
	case sure:
		t.Sure++
	case maybe:
		t.Maybe++
	}
}

func (t eventCount) allows(n int64) bool { return n >= t.Sure && n <= t.Sure+t.Maybe }

func (t eventCount) plus(o eventCount) eventCount {
	return eventCount{t.Sure + o.Sure, t.Maybe + o.Maybe}
}
