package pipe

import (
	"sync"
	"time"
)

// beat is how often a announcer looks.
const beat = time.Millisecond

// An announcer looks after what a rank's readers have not announced. One timer serves all
// of them, and runs only while there is something: a thousand timers that run out each
// millisecond would take a core.
type announcer struct {
	mu      sync.Mutex // held for moments
	timer   *time.Timer
	running bool
	owing   []*returns
	round   []*returns // those that are looked at
}

// add has a reader's returns be looked at by the next tick.
func (m *announcer) add(r *returns) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owing = append(m.owing, r)
	if m.running {
		return
	}
	m.running = true
	if m.timer == nil {
		m.timer = time.AfterFunc(beat, m.tick)
	} else {
		m.timer.Reset(beat)
	}
}

// tick looks at each reader once. A reader that still owes something comes again. tick
// sets the timer when the round is over, so that no tick overtakes another.
func (m *announcer) tick() {
	m.mu.Lock()
	m.owing, m.round = m.round[:0], m.owing
	round := m.round
	m.mu.Unlock()
	for i, r := range round {
		round[i] = nil
		r.tick()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running = len(m.owing) > 0; m.running {
		m.timer.Reset(beat)
	}
}
