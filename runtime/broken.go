package runtime

import (
	"encoding/json"

	"github.com/gopgas/gopgas/internal/fabric"
)

// breaks has everyone who waits for the team at this rank learn of e.
func (t *Team) breaks(e *TeamError) {
	if t.broken.CompareAndSwap(nil, e) {
		t.end(e)
		t.job.fabric.Poke()
	}
}

// failed takes the consequences of a collective call that ended early at this
// rank: the others might wait for it for ever, so the team is broken and they
// are told. It returns what the caller gets.
func (t *Team) failed(c fabric.Collective, err error) error {
	if t.job.aborted.Err() != nil || t.broken.Load() != nil {
		return err
	}
	m := newBreakMessage(t, c.String(), err)
	t.breaks(m.err())
	t.tellBroken(m)
	return err
}

// tellBroken tells the other members, as far as they can be told.
func (t *Team) tellBroken(m breakMessage) {
	payload, err := json.Marshal(m)
	if err != nil {
		return
	}
	for i, rank := range t.members {
		if i != t.rank {
			// A member that cannot be told is dead or leaving.
			_ = t.job.client.Tell(rank, breakService, payload)
		}
	}
}
