package pipe

import (
	"sync"
	"time"
)

// beat is how often the announcer looks.
const beat = time.Millisecond

// An announcer looks after what a rank's readers have not announced. One clock serves all
// of them, and runs only while there is something: a thousand timers that run out each
// millisecond would take a core.
type announcer struct {
	Clock
	mu    sync.Mutex // held for moments
	owing []*returns
	round []*returns // those that tick looks at
}

// add has a reader's returns be looked at by the next tick.
func (m *announcer) add(r *returns) {
	m.mu.Lock()
	m.owing = append(m.owing, r)
	m.mu.Unlock()
	m.Arm()
}

// look looks at each reader once. A reader that still owes something comes again.
func (m *announcer) look() (again bool) {
	m.mu.Lock()
	m.owing, m.round = m.round[:0], m.owing
	m.mu.Unlock()
	for i, r := range m.round {
		m.round[i] = nil
		r.tick()
	}
	return false
}
