package pipe

import "github.com/gopgas/gopgas/internal/rmalloc"

// lines are the memory of small blocks at the reader. The place of a recent block has a
// line, where Read copies the block's bytes. A block that is settled and not freed keeps its
// line, and the place gets another one.
//
// The goroutine that reads has the lines of places without a block, the mutex's holder all
// others.
type lines struct {
	recent [rmalloc.RecentBlocks]*line // by place
	held   []*line                     // by slot in Held
	spare  []*line
	made   bool // each place has had a line
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
	for slot >= len(l.held) {
		l.held = append(l.held, nil)
	}
	l.held[slot], l.recent[place] = l.recent[place], nil
	if n := len(l.spare); n > 0 {
		l.recent[place], l.spare = l.spare[n-1], l.spare[:n-1]
	}
}

// drop takes back the line of a held block, if it has one.
func (l *lines) drop(slot int) {
	if slot < len(l.held) && l.held[slot] != nil {
		l.held[slot], l.spare = nil, append(l.spare, l.held[slot])
	}
}
