package pipe

import "github.com/gopgas/gopgas/internal/rmalloc"

// bySlot are pieces of an end's own memory, one for each block whose bytes do not lie in the heap, by
// its slot. A block takes the piece that came back last, which the core's caches still hold.
type bySlot[M any] struct {
	held  []*M // nil: the block has none
	spare []*M // of no block
}

// has reports whether the block of a slot has a piece.
func (s *bySlot[M]) has(slot int) bool { return slot < len(s.held) && s.held[slot] != nil }

// at returns the piece of the block of a slot, which takes one if it has none.
func (s *bySlot[M]) at(slot int) *M {
	if !s.has(slot) {
		s.put(slot, s.take())
	}
	return s.held[slot]
}

// take returns a piece of no block.
func (s *bySlot[M]) take() (m *M) {
	n := len(s.spare)
	if n == 0 {
		return new(M)
	}
	m, s.spare = s.spare[n-1], s.spare[:n-1]
	return m
}

// put makes m the piece of the block of a slot.
func (s *bySlot[M]) put(slot int, m *M) {
	for slot >= len(s.held) {
		s.held = append(s.held, nil)
	}
	s.held[slot] = m
}

// give takes back the piece of the block of a slot, if it has one.
func (s *bySlot[M]) give(slot int) {
	if s.has(slot) {
		s.held[slot], s.spare = nil, append(s.spare, s.held[slot])
	}
}

// lines are the memory of small blocks at the reader. The place of a recent block has a
// line, where Read copies the block's bytes. A block that is settled and not freed keeps its
// line, and the place gets another one.
//
// The goroutine that reads has the lines of places without a block, the mutex's holder all
// others.
type lines struct {
	recent [rmalloc.RecentBlocks]*line // by place
	held   bySlot[line]                // of settled blocks, by slot in Held
	made   bool                        // each place has had a line
}

// at returns the line of a place without a block.
func (l *lines) at(place int) *line {
	switch {
	case l.recent[place] != nil:
	case l.made:
		l.recent[place] = new(line)
	default:
		l.made = true
		all := new([rmalloc.RecentBlocks]line)
		for i := range all {
			l.recent[i] = &all[i]
		}
	}
	return l.recent[place]
}

// keep gives the line of a place to a held block.
func (l *lines) keep(place, slot int) {
	l.held.put(slot, l.recent[place])
	l.recent[place] = nil
	if len(l.held.spare) > 0 {
		l.recent[place] = l.held.take()
	}
}
