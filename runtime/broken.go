package runtime

import (
	"context"
	"encoding/json"

	"github.com/gopgas/gopgas/internal/fabric"
)

// initBreaking makes the team's breaking point.
func (t *Team) initBreaking() {
	whole, end := context.WithCancelCause(t.job.aborted)
	t.whole = whole
	t.breaks = func(e *TeamError) {
		if t.broken.CompareAndSwap(nil, e) {
			end(e)
			t.job.fabric.Poke()
		}
	}
}

// failed takes the consequences of a collective call that ended early at this
// rank: the others might wait for it for ever, so the team is broken and they
// are told. It returns what the caller gets.
func (t *Team) failed(c fabric.Collective, err error) error {
	if t.job.aborted.Err() != nil {
		return err
	}
	if t.broken.Load() != nil {
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
