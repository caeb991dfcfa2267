package window

import "sort"

// A LockState is the state of this rank's own lock.
type LockState struct {
	Writer  int // -1 without one
	Readers int
	Waiters bool  // further ranks must wait
	Waiting []int // ranks, in the order in which they came
	Tickets []uint64
}

// LockState returns the state of this rank's own lock. It reads the ranks that wait first.
func (w *Window[T]) LockState() (s LockState) {
	var entries []uint64
	for rank := range w.remotes {
		if e := w.word(w.layout.entries + rank*8).Load(); waits(e) {
			entries = append(entries, e)
			s.Waiting = append(s.Waiting, rank)
		}
	}
	sort.Sort(byTicket{entries, s.Waiting})
	s.Tickets = entries
	state := w.word(w.layout.lock).Load()
	s.Writer, s.Readers, s.Waiters = writerOf(state), int(state&readersMask), state&waitersBit != 0
	return s
}

type byTicket struct {
	entries []uint64
	ranks   []int
}

func (b byTicket) Len() int           { return len(b.ranks) }
func (b byTicket) Less(i, j int) bool { return b.entries[i] < b.entries[j] }
func (b byTicket) Swap(i, j int) {
	b.entries[i], b.entries[j] = b.entries[j], b.entries[i]
	b.ranks[i], b.ranks[j] = b.ranks[j], b.ranks[i]
}
