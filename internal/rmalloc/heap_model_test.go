package rmalloc

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A machine runs a heap beside its model.
type machine struct {
	heap  *Heap
	model *model
	known []Addr // all addresses there have been lately, in order of birth
}

func newMachine(t require.TestingT, c Config) *machine {
	h, err := New(c)
	require.NoError(t, err)
	return &machine{heap: h, model: newModel(h.Config())}
}

func (m *machine) alloc(n int) error {
	a, err := m.heap.Alloc(n)
	if err == nil {
		m.known = append(m.known, a)
		if len(m.known) > 64 {
			m.known = m.known[1:]
		}
	}
	return m.model.alloc(n, a, err)
}

func (m *machine) free(a Addr) error { return m.model.free(a, m.heap.Free(a)) }
func (m *machine) send(a Addr) error { return m.model.send(a, m.heap.Send(a)) }
func (m *machine) shrink(a Addr, n int) error {
	return m.model.shrink(a, n, m.heap.Shrink(a, n))
}
func (m *machine) release(offset, count int) error {
	return m.model.release(offset, count, m.heap.Release(offset, count))
}

// check compares the heap's public and internal state with the model.
func (m *machine) check() error {
	got := m.heap.Stats()
	want := m.model.stats()
	want.Overhead = got.Overhead
	if got != want {
		return fmt.Errorf("stats %+v, want %+v", got, want)
	}
	for a, b := range m.model.blocks {
		offset, length, err := m.heap.Range(a)
		if b.sent {
			if err := expect(err, ErrStale); err != nil {
				return err
			}
		} else if err != nil || offset != a.Offset() || length != b.length {
			return fmt.Errorf("%v is at %d, %d bytes (%w), want %d bytes", a, offset, length, err, b.length)
		}
	}
	return m.heap.holes.check(m.model.holes())
}

// check walks both lists, up and down.
func (h *Holes) check(want []Range) error {
	var up, down []Range
	for hole := h.First(); hole != NoHole; hole = h.Next(hole) {
		up = append(up, Range{h.Offset(hole), h.Count(hole)})
	}
	for i := h.spans[0].before; i != 0; i = h.spans[i].before {
		down = append(down, Range{h.Offset(Hole(i)), h.Count(Hole(i))})
	}
	slices.Reverse(down)
	if !slices.Equal(up, want) || !slices.Equal(down, want) {
		return fmt.Errorf("holes %v upward, %v downward, want %v", up, down, want)
	}
	end, below := uint32(0), int32(0)
	for i := h.spans[0].next; i != 0; i = h.spans[i].next {
		s := h.spans[i]
		if s.addr.granule() != end || s.prev != below {
			return fmt.Errorf("span %d %+v does not follow %d, which ends at %d", i, s, below, end)
		}
		if !s.hole() && h.find(s.addr.granule()) != i {
			return fmt.Errorf("block %v is not found", s.addr)
		}
		end, below = end+s.count, i
	}
	if h.spans[0].prev != below || h.rover != NoHole && !h.spans[h.rover].hole() {
		return fmt.Errorf("last span %d, want %d; rover %d", h.spans[0].prev, below, h.rover)
	}
	return nil
}

// someAddr draws an address that is or was the heap's, or never was.
func (m *machine) someAddr(t *rapid.T) Addr {
	if len(m.known) == 0 || rapid.IntRange(0, 9).Draw(t, "foreign") == 0 {
		return Addr(rapid.Uint64().Draw(t, "addr"))
	}
	return rapid.SampledFrom(m.known).Draw(t, "known")
}

// liveRun draws a range of whole blocks, as many in a row as it likes.
func (m *machine) liveRun(t *rapid.T) Range {
	owner := m.model.owner
	var starts []int
	for g, a := range owner {
		if a != 0 && (g == 0 || owner[g-1] != a) {
			starts = append(starts, g)
		}
	}
	if len(starts) == 0 {
		return Range{}
	}
	first := rapid.IntRange(0, len(starts)-1).Draw(t, "first")
	last := min(first+rapid.IntRange(0, 3).Draw(t, "more"), len(starts)-1)
	end := starts[last] + Granules(m.model.blocks[owner[starts[last]]].length)
	return Range{starts[first], end - starts[first]}
}

// fragment fills the heap with small blocks and gives some of them back.
func (m *machine) fragment(t *rapid.T) error {
	for _, n := range rapid.SliceOfN(rapid.IntRange(0, 3*Granule), 0, 40).Draw(t, "fill") {
		if err := m.alloc(n); err != nil {
			return err
		}
	}
	for _, a := range slices.Clone(m.known) {
		switch rapid.IntRange(0, 4).Draw(t, "fate") {
		case 0, 1:
			if err := m.free(a); err != nil {
				return err
			}
		case 2, 3:
			if err := m.send(a); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestHeapBehavesLikeItsModel(t *testing.T) {
	eachPolicy(t, func(t *testing.T, p Policy) {
		rapid.Check(t, func(t *rapid.T) {
			m := newMachine(t, Config{
				Size:   Granule * rapid.IntRange(1, 100).Draw(t, "granules"),
				Blocks: rapid.IntRange(0, 30).Draw(t, "blocks"),
				Policy: p,
			})
			lengths := rapid.OneOf(rapid.IntRange(0, 5*Granule), rapid.IntRange(0, m.heap.config.Size+Granule))
			must := func(err error) { require.NoError(t, err) }
			alloc := func(t *rapid.T) { must(m.alloc(lengths.Draw(t, "length"))) }
			send := func(t *rapid.T) { must(m.send(m.someAddr(t))) }
			release := func(t *rapid.T) {
				r := m.liveRun(t)
				must(m.release(r.Offset, r.Count))
			}
			must(m.fragment(t))
			t.Repeat(map[string]func(*rapid.T){
				"":       func(*rapid.T) { must(m.check()) },
				"alloc":  alloc,
				"alloc2": alloc,
				"alloc3": alloc,
				"send":   send,
				"send2":  send,
				"send all": func(*rapid.T) {
					for a, b := range m.model.blocks {
						if !b.sent {
							must(m.send(a))
						}
					}
				},
				"free":     func(t *rapid.T) { must(m.free(m.someAddr(t))) },
				"shrink":   func(t *rapid.T) { must(m.shrink(m.someAddr(t), rapid.IntRange(-1, 6*Granule).Draw(t, "keep"))) },
				"release":  release,
				"release2": release,
				"release anything": func(t *rapid.T) {
					must(m.release(rapid.IntRange(-2, 110).Draw(t, "offset"), rapid.IntRange(-2, 110).Draw(t, "count")))
				},
			})
		})
	})
}

// FuzzRelease lets the input play the reader: each four bytes are a step, with
// arbitrary tags.
func FuzzRelease(f *testing.F) {
	f.Add(uint8(0), []byte{0, 0, 0, 70, 1, 0, 0, 0, 3, 0, 0, 2})
	f.Add(uint8(3), []byte{0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 1, 3, 0, 0, 8, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, policy uint8, program []byte) {
		m := newMachine(t, Config{Size: 64 * Granule, Blocks: 16, Policy: policies[int(policy)%len(policies)]})
		for program = program[:min(len(program), 4*100)]; len(program) >= 4; program = program[4:] {
			x, y := int(program[1]), int(program[3])
			var known Addr
			if len(m.known) > 0 {
				known = m.known[(x<<8|y)%len(m.known)]
			}
			var err error
			switch program[0] % 4 {
			case 0:
				err = m.alloc(x<<8 | y)
			case 1:
				err = m.send(known)
			case 2:
				err = m.free(known)
			case 3:
				err = m.release(int(int8(program[1])), int(int8(program[3])))
			}
			require.NoError(t, err)
			require.NoError(t, m.check())
		}
	})
}
