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
	state state

	fin, last, reset bool // words

	opened, over, closes bool // by the program, which may end its writes first
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

// step is End.step.
func (m *model) step(i int, e event) {
	end := &m.ends[i]
	for e != noEvent {
		to, enters := end.state.on(e)
		end.state, e = to, noEvent
		if !enters {
			return
		}
		if m.miss && (to == stateLastAck || to == stateReset) {
			m.misses--
			return
		}
		switch to {
		case stateSynSent:
			end.seeking, end.heard = true, end.last
		case stateFinWait:
			switch {
			case end.kind == reads || end.deserted:
				m.postLast(i)
			case !end.finPut:
				end.finPut = true
				m.put(i, func(to *modelEnd) *bool { return &to.fin })
			}
		case stateLastAck:
			if end.kind == writes {
				m.postLast(i)
			}
			if end.lastPut {
				e = eventLast
			}
		case stateReset:
			m.put(i, func(to *modelEnd) *bool { return &to.reset })
			e = eventTold
		case stateClosed:
			end.released = true
		}
	}
}

// observe is End.observe.
func (m *model) observe(i int) event {
	end, peer := &m.ends[i], &m.ends[1-i]
	switch {
	case peer.seen:
		return eventGone
	case !end.joined && end.reset:
		return eventPeerReset
	case end.last:
		return eventPeerLast
	}
	return eventLook
}

// depart is End.Depart.
func (m *model) depart(i int) {
	end := &m.ends[i]
	switch {
	case end.joined:
		m.step(i, eventClose)
	case end.broken:
		m.step(i, eventUnfit)
	default:
		end.cardClosed = true
		m.step(i, eventAbandon)
	}
}

// there reports whether this end can find the peer's memory.
func (m *model) there(i int) bool {
	peer := &m.ends[1-i]
	return peer.opened && !peer.released && !peer.dead
}

// meet is the second half of Join: the peer's memory is found, and its card is read.
func (m *model) meet(i int) event {
	end := &m.ends[i]
	switch {
	case !m.there(i):
		return noEvent // the read fails
	case m.differ:
		return eventDiffers
	}
	end.joined, end.deserted = true, m.ends[1-i].cardClosed
	return eventConnected
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
	try(free && !e.closes && !e.broken && e.state == stateOpen && !e.joined && m.there(i), func(_ *model, end *modelEnd) { end.found = true })
	try(!e.closes && e.found, func(m *model, end *modelEnd) {
		end.found = false
		if e := m.meet(i); e == eventDiffers {
			end.broken = true
			m.step(i, e)
		}
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
		if end.heard {
			m.step(i, eventVanished)
		} else {
			m.step(i, eventAbsent)
		}
	})
	try(e.seeking && m.misses > 0, func(m *model, end *modelEnd) { m.misses--; end.seeking, end.found = false, false })
	try(e.seeking && e.found, func(m *model, end *modelEnd) {
		end.seeking, end.found = false, false
		m.step(i, m.meet(i))
	})
	try(free && e.closes && !e.released, func(m *model, _ *modelEnd) { m.step(i, m.observe(i)) })
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
	reached := map[[2]state]bool{}
	for _, differ := range []bool{false, true} {
		for deaths := range 2 {
			for misses := range 3 {
				from := model{differ: differ, deaths: deaths, misses: misses}
				from.ends[0].kind, from.ends[1].kind = writes, reads
				back := walk(from)
				var ends []model
				for m := range back {
					reached[[2]state{m.ends[0].state, m.ends[1].state}] = true
					for i, e := range m.ends {
						require.False(t, e.astray, "%+v", m)
						peer := m.ends[1-i]
						using := e.joined && e.state == stateOpen && !e.dead && !e.lastPut
						require.False(t, using && peer.released && !peer.dead, "%+v", m)
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
	for s := range states {
		require.True(t, reached[[2]state{s, stateClosed}], "%v is reached while the peer is closed", s)
		require.True(t, reached[[2]state{s, stateOpen}], "%v is reached while the peer is open", s)
	}
	t.Logf("%d pairs of states", len(reached))
}

// TestClosingEndsWithoutPeer has each closed state end with the death of the peer's
// rank. An end that was not connected seeks its peer; one whose peer is of another kind
// waits.
func TestClosingEndsWithoutPeer(t *testing.T) {
	for _, s := range []state{stateOpen, stateSynSent, stateListen} { // CloseWrite, and Close behind it
		to, enters := s.on(eventAbandon)
		require.Equal(t, stateSynSent, to, s)
		require.True(t, enters, s)
	}
	for _, s := range []state{stateOpen, stateSynSent} {
		to, _ := s.on(eventUnfit)
		require.Equal(t, stateTimeWait, to, s)
	}
	for s := stateSynSent; s < stateClosed; s++ {
		to, _ := s.on(eventGone)
		require.Equal(t, stateClosed, to, s)
	}
}
