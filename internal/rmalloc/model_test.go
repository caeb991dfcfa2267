package rmalloc

import (
	"errors"
	"fmt"
	"slices"
)

// A model is a heap written without a thought for speed: a map of granules. A
// Heap must behave like its model.
type model struct {
	policy string
	limit  int
	owner  []Addr // of each granule; 0 is free
	blocks map[Addr]modelBlock
	rover  int // a granule of the hole where the last search ended, or -1
}

type modelBlock struct {
	length int
	sent   bool
}

func newModel(c Config) *model {
	return &model{
		policy: c.Policy.String(),
		limit:  c.Blocks,
		owner:  make([]Addr, c.Size/Granule),
		blocks: map[Addr]modelBlock{},
		rover:  -1,
	}
}

// holes are the free ranges in address order.
func (m *model) holes() (all []Range) {
	for g := 0; g < len(m.owner); g++ {
		start := g
		for g < len(m.owner) && m.owner[g] == 0 {
			g++
		}
		if g > start {
			all = append(all, Range{start, g - start})
		}
	}
	return all
}

// place returns where the policy must put a block of count granules, or -1.
func (m *model) place(count int) int {
	holes := m.holes()
	if m.policy == "next-fit" {
		if i := slices.IndexFunc(holes, func(r Range) bool { return r.Offset <= m.rover && m.rover < r.end() }); i >= 0 {
			holes = slices.Concat(holes[i:], holes[:i])
		}
	}
	holes = slices.DeleteFunc(holes, func(r Range) bool { return r.Count < count })
	switch {
	case len(holes) == 0:
		return -1
	case m.policy == "best-fit":
		return slices.MinFunc(holes, func(a, b Range) int { return a.Count - b.Count }).Offset
	case m.policy == "worst-fit":
		return slices.MaxFunc(holes, func(a, b Range) int { return a.Count - b.Count }).Offset
	}
	return holes[0].Offset
}

// alloc enters the block that the heap has placed, or failed to place.
func (m *model) alloc(n int, a Addr, err error) error {
	count := Granules(n)
	want := m.place(count)
	switch {
	case n > len(m.owner)*Granule:
		return expect(err, ErrTooLarge)
	case want < 0 || len(m.blocks) == m.limit:
		return expect(err, ErrFull)
	case err != nil:
		return fmt.Errorf("%d granules: %w; there is room at %d", count, err, want)
	case a.Offset() != want*Granule:
		return fmt.Errorf("%d granules are at %d, and not at %d, the %s of %v", count, a.Offset()/Granule, want, m.policy, m.holes())
	}
	if _, twice := m.blocks[a]; twice {
		return fmt.Errorf("address %v was given twice", a)
	}
	m.blocks[a] = modelBlock{length: n}
	for g := want; g < want+count; g++ {
		m.owner[g] = a
	}
	m.leave(want + count)
	return nil
}

// leave remembers the end of the search: the first free granule from there on.
func (m *model) leave(granule int) {
	m.rover = -1
	if i := slices.Index(m.owner[granule:], 0); i >= 0 {
		m.rover = granule + i
	}
}

// free takes out a block that its owner gave back.
func (m *model) free(a Addr, err error) error {
	if b, ok := m.blocks[a]; !ok || b.sent {
		return expect(err, ErrStale)
	}
	m.clear(a)
	return err
}

func (m *model) send(a Addr, err error) error {
	b, ok := m.blocks[a]
	if !ok || b.sent {
		return expect(err, ErrStale)
	}
	m.blocks[a] = modelBlock{b.length, true}
	return err
}

// shrink gives back the granules of a block beyond n bytes.
func (m *model) shrink(a Addr, n int, err error) error {
	b, ok := m.blocks[a]
	switch {
	case !ok || b.sent:
		return expect(err, ErrStale)
	case n < 0 || n > b.length:
		return expect(err, ErrInvalid)
	}
	begin := a.Offset() / Granule
	for g := begin + Granules(n); g < begin+Granules(b.length); g++ {
		m.owner[g] = 0
	}
	m.blocks[a] = modelBlock{length: n}
	return err
}

// release takes out the sent blocks of a range, if they fill it exactly.
func (m *model) release(offset, count int, err error) error {
	inside := map[Addr]bool{}
	if offset < 0 || count <= 0 || count > len(m.owner) || offset > len(m.owner)-count {
		return expect(err, ErrCorrupt)
	}
	for _, a := range m.owner[offset : offset+count] {
		if !m.blocks[a].sent {
			return expect(err, ErrCorrupt)
		}
		inside[a] = true
	}
	first, last := m.owner[offset], m.owner[offset+count-1]
	if offset > 0 && m.owner[offset-1] == first || offset+count < len(m.owner) && m.owner[offset+count] == last {
		return expect(err, ErrCorrupt)
	}
	for a := range inside {
		m.clear(a)
	}
	return err
}

func (m *model) clear(a Addr) {
	delete(m.blocks, a)
	for g, owner := range m.owner {
		if owner == a {
			m.owner[g] = 0
		}
	}
}

// stats returns the expected Stats of the heap, except for the size of its books.
func (m *model) stats() Stats {
	s := Stats{Size: len(m.owner) * Granule, Blocks: len(m.blocks)}
	for _, b := range m.blocks {
		s.Payload += b.length
		s.Used += Granules(b.length) * Granule
	}
	for _, r := range m.holes() {
		s.Holes++
		s.Largest = max(s.Largest, r.Count*Granule)
	}
	return s
}

// expect fails the test if err is not the expected one.
func expect(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("got %w, want %w", err, want)
}
