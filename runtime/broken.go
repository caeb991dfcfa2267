package runtime

import (
	"context"
	"encoding/json"
	"errors"

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
	e := &TeamError{Team: t.name, Rank: t.job.fabric.Rank(), Call: c.String(), Cause: err.Error()}
	name := ""
	for n, kind := range kinds {
		if errors.Is(err, kind) {
			name, e.Kind = n, kind
		}
	}
	if t.broken.Load() != nil {
		return err
	}
	t.breaks(e)
	t.tellBroken(e, name)
	return err
}

// tellBroken tells the other members, as far as they can be told.
func (t *Team) tellBroken(e *TeamError, kind string) {
	payload, err := json.Marshal(breakMessage{Team: e.Team, Call: e.Call, Cause: e.Cause, Rank: e.Rank, Kind: kind})
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
