package runtime

import (
	"encoding/json"
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
func (t *Team) failed(call string, err error) error {
	if t.job.aborted.Err() != nil || t.broken.Load() != nil {
		return err
	}
	m := newBreakMessage(&TeamError{Team: t.name, Rank: t.job.fabric.Rank(), Call: call, Reason: err, Cause: err.Error()})
	e := m.err()
	t.breaks(e)
	t.job.remember(e)
	for i, rank := range t.members {
		if i != t.rank {
			t.job.tellBroken(rank, m)
		}
	}
	return err
}

// remember keeps how a team broke that this rank does not know, or could not make.
func (j *Job) remember(e *TeamError) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.teams[e.Team] == nil {
		j.broken[e.Team] = e
	}
}

// tellBroken tells a rank that a team is broken. One that hears nothing of it is dead,
// or leaving, or waits: then it asks what this rank does ([Job.asked]), and is told again.
func (j *Job) tellBroken(rank int, m breakMessage) {
	if payload, err := json.Marshal(m); err == nil {
		_ = j.client.Tell(rank, breakService, payload)
	}
}

// brokenFor returns how a team broke as this rank knows it, nil while it is whole or
// when it was freed.
func (j *Job) brokenFor(name string) *TeamError {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := j.broken[name]
	if t := j.teams[name]; t != nil {
		e = t.broken.Load()
	}
	if e != nil && e.freed() {
		return nil
	}
	return e
}
