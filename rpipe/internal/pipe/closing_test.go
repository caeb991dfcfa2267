package pipe

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A kind of end decides when its last flag is posted.
type kind uint8

const (
	writes kind = iota // posts its last flag behind the peer's
	reads              // may post its last flag once it has the peer's FIN
)

// modelEnd is an end of which only the closing is left. Its memory has three words, which
// the peer puts.
type modelEnd struct {
	kind  kind
	known standing // as closing.known

	fin, last, reset bool // words

	opened, over, closes bool // by the program, which may end its writes first
	departed             bool // as of an End
	broken               bool // as Broken of an End
	joined, deserted     bool
	cardClosed           bool
	seeking, found       bool // it looks for the peer, it has found the peer's memory
	heard                bool // as it began to look
	finPut, lastPut      bool
	released             bool
	dead, seen           bool // the rank, and the peer knows
	quit                 bool // the job has ended at the rank, of which the peer does not learn
	astray               bool // a put went to memory that was given back
}

// model is both ends. It is a value: each move makes another one.
type model struct {
	ends           [2]modelEnd
	differ         bool // the cards do
	deaths, misses int  // that may still come: deaths of a rank, calls that fail
	miss           bool // the next call that waits fails
}

// put stores a word of the peer.
func (m *model) put(i int, word func(*modelEnd) *bool) {
	to := &m.ends[1-i]
	if to.released && !to.dead {
		m.ends[i].astray = true
	}
	*word(to) = true
}

func (m *model) postLast(i int) {
	if e := &m.ends[i]; !e.lastPut {
		e.lastPut = true
		m.put(i, func(to *modelEnd) *bool { return &to.last })
	}
}

// standing is End.standing.
func (m *model) standing(i int) standing {
	end := &m.ends[i]
	s := end.known
	s.gone = end.closes && m.ends[1-i].seen
	s.connected, s.broken, s.heard = end.joined, end.broken, end.last
	s.refused = !end.joined && end.reset
	return s
}

// proceed is End.proceed. It ends where the end looks for its peer, which is a move of its own.
func (m *model) proceed(i int, closed bool) {
	end := &m.ends[i]
	for !end.released {
		next := m.standing(i).due()
		switch {
		case next >= stepFinish && !closed:
			return
		case m.miss && (next == stepFinish || next == stepTell):
			m.misses--
			return
		case next == stepNone:
			return
		case next == stepSeek:
			end.seeking, end.heard = true, end.last
			return
		case next == stepDeliver:
			end.known.delivered = true
			switch {
			case end.kind == reads || end.deserted:
				m.postLast(i)
			case !end.finPut:
				end.finPut = true
				m.put(i, func(to *modelEnd) *bool { return &to.fin })
			}
		case next == stepFinish:
			if end.kind == writes {
				m.postLast(i)
			}
			if !end.lastPut {
				return
			}
			end.known.over = true
		case next == stepTell:
			m.put(i, func(to *modelEnd) *bool { return &to.reset })
			end.known.told = true
		case next == stepRelease:
			end.released = true
		}
	}
}

// depart is End.Depart.
func (m *model) depart(i int) {
	end := &m.ends[i]
	end.departed, end.known.absent = true, false
	if !end.joined {
		if end.broken {
			return
		}
		end.cardClosed = true
	}
	m.proceed(i, false)
}

// there reports whether this end can find the peer's memory.
func (m *model) there(i int) bool {
	peer := &m.ends[1-i]
	return peer.opened && !peer.released && !peer.dead
}

// meet is the second half of Join: the peer's memory is found, and its card is read. It is false
// if the end has not connected.
func (m *model) meet(i int) bool {
	end := &m.ends[i]
	switch {
	case !m.there(i):
		return false // the read fails
	case m.differ:
		end.broken, end.known.differs = true, true
		if m.miss {
			m.misses--
		} else {
			m.put(i, func(to *modelEnd) *bool { return &to.reset })
			end.known.told = true
		}
		return false
	}
	end.joined, end.deserted = true, m.ends[1-i].cardClosed
	return true
}

// moves returns all models that may come next.
func (m model) moves() (next []model) {
	for i := range m.ends {
		next = append(next, m.movesOf(i)...)
	}
	return next
}

func (m model) movesOf(i int) (next []model) {
	try := func(may bool, move func(m *model, end *modelEnd)) {
		for _, miss := range []bool{false, true} {
			if may && (!miss || m.misses > 0) {
				to := m
				to.miss = miss
				move(&to, &to.ends[i])
				to.miss = false
				next = append(next, to)
			}
		}
	}
	e := m.ends[i]
	if e.dead {
		try(!e.seen && !e.quit, func(_ *model, end *modelEnd) { end.seen = true })
		return next
	}
	free := e.opened && !e.seeking && !e.found
	try(m.deaths > 0, func(m *model, end *modelEnd) { m.deaths--; end.dead = true })
	try(m.deaths > 0 && e.lastPut, func(m *model, end *modelEnd) { m.deaths--; end.dead, end.quit = true, true })
	try(!e.opened, func(_ *model, end *modelEnd) { end.opened = true })
	// The program's calls.
	try(free && !e.closes && !e.broken && !e.departed && !e.joined && m.there(i), func(_ *model, end *modelEnd) { end.found = true })
	try(!e.closes && !e.seeking && e.found, func(m *model, end *modelEnd) {
		end.found = false
		m.meet(i)
	})
	try(free && !e.closes && e.kind == reads && e.joined && e.fin, func(m *model, _ *modelEnd) { m.postLast(i) })
	try(free && !e.closes, func(m *model, end *modelEnd) {
		end.closes = true
		m.depart(i)
	})
	try(free && !e.closes && !e.over && e.kind == writes, func(m *model, end *modelEnd) {
		end.over = true
		m.depart(i)
	})
	// A closed end.
	try(e.seeking && !e.found && m.there(i), func(_ *model, end *modelEnd) { end.found = true })
	try(e.seeking && !e.found && !m.there(i), func(m *model, end *modelEnd) {
		end.seeking = false
		end.known.over, end.known.absent = end.heard, true
		if end.heard {
			m.proceed(i, end.closes)
		}
	})
	try(e.seeking && m.misses > 0, func(m *model, end *modelEnd) { m.misses--; end.seeking, end.found = false, false })
	try(e.seeking && e.found, func(m *model, end *modelEnd) {
		end.seeking, end.found = false, false
		if m.meet(i) {
			m.proceed(i, end.closes)
		}
	})
	try(free && e.closes && !e.released, func(m *model, _ *modelEnd) { m.proceed(i, true) })
	return next
}

// over reports whether each end that lives has given its memory back.
func (m model) over() bool {
	for _, e := range m.ends {
		if !e.dead && !e.released {
			return false
		}
	}
	return true
}

// walk returns all models that follow from one, and the moves that lead to each.
func walk(from model) map[model][]model {
	back := map[model][]model{from: nil}
	for line := []model{from}; len(line) > 0; {
		m := line[len(line)-1]
		line = line[:len(line)-1]
		for _, to := range m.moves() {
			if to == m {
				continue
			}
			if _, known := back[to]; !known {
				line = append(line, to)
			}
			back[to] = append(back[to], m)
		}
	}
	return back
}

// TestClosingEndsInEachPairOfStates walks all pairs of states that two ends reach, in each
// order of their steps. From each, both ends come to give their memory back. No end puts
// into memory that was given back, and none uses its peer's memory behind that.
func TestClosingEndsInEachPairOfStates(t *testing.T) {
	waiting := map[step]map[bool]bool{} // by what is due, and whether the peer has given its memory back
	for s := range steps {
		waiting[s] = map[bool]bool{}
	}
	pairs := 0
	for _, differ := range []bool{false, true} {
		for deaths := range 2 {
			for misses := range 3 {
				from := model{differ: differ, deaths: deaths, misses: misses}
				from.ends[0].kind, from.ends[1].kind = writes, reads
				back := walk(from)
				pairs += len(back)
				var ends []model
				for m := range back {
					for i, e := range m.ends {
						require.False(t, e.astray, "%+v", m)
						peer := m.ends[1-i]
						using := e.joined && !e.departed && !e.dead && !e.lastPut
						require.False(t, using && peer.released && !peer.dead, "%+v", m)
						if e.departed && !e.released {
							waiting[m.standing(i).due()][peer.released] = true
						}
					}
					if m.over() {
						ends = append(ends, m)
					}
				}
				leads := map[model]bool{}
				for len(ends) > 0 {
					m := ends[len(ends)-1]
					ends = ends[:len(ends)-1]
					if !leads[m] {
						leads[m] = true
						ends = append(ends, back[m]...)
					}
				}
				for m := range back {
					require.True(t, leads[m], "no step leads to the end from %+v", m)
				}
			}
		}
	}
	for s := range steps {
		if s != stepDeliver { // it does not fail
			require.Len(t, waiting[s], 2, "step %d is due while the peer has its memory, and behind that", s)
		}
	}
	t.Logf("%d pairs of states", pairs)
}

// TestClosingEndsWithoutPeer has an end release its memory in each state once the peer's rank is
// gone. An end whose peer was absent seeks it again behind the peer's last flag.
func TestClosingEndsWithoutPeer(t *testing.T) {
	for bits := range 1 << 7 {
		has := func(i int) bool { return bits>>i&1 != 0 }
		s := standing{connected: has(0), broken: has(1), heard: has(2), refused: has(3), delivered: has(4), absent: has(5), differs: has(6)}
		s.gone = true
		require.Equal(t, stepRelease, s.due(), "%+v", s)
	}
	require.Equal(t, stepNone, standing{absent: true}.due())
	require.Equal(t, stepSeek, standing{absent: true, heard: true}.due())
	require.Equal(t, stepNone, standing{broken: true}.due(), "the peer is of another kind")
}
