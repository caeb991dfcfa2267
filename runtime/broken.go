package runtime

import (
	"encoding/json"
)

// breaks ends all waits for the team at this rank with e.
func (t *Team) breaks(e *TeamError) {
	if t.broken.CompareAndSwap(nil, e) {
		t.end(e)
		t.job.fabric.Poke()
	}
}

// failed breaks the team after a collective call that ended early at this rank: the
// other members might wait for it forever. It tells them, and returns the caller's
// error.
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

// remember stores the error of a broken team that this rank does not know yet, or could
// not make.
func (j *Job) remember(e *TeamError) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.teams[e.Team] == nil {
		j.broken[e.Team] = e
	}
}

// mayMake reports whether this rank may still make a team that it does not know. The Split of another team has
// not ended here then, or has not begun. The name of a team says which Split makes it. The caller holds mu.
func (j *Job) mayMake(name string) bool {
	parent, seq, split := splitOf(name)
	if t := j.teams[parent]; split && t != nil {
		return t.stream.ended.Load() < seq
	}
	return !split || j.mayMake(parent)
}

// tellBroken tells a rank that a team is broken. The message may be lost if the rank is
// dead, is leaving or waits. A rank that waits sends an inquiry, and this rank then tells
// it again ([Job.handleInquiry]).
func (j *Job) tellBroken(rank int, m breakMessage) {
	if payload, err := json.Marshal(m); err == nil {
		_ = j.client.Tell(rank, breakService, payload)
	}
}

// brokenFor returns the error of a team that broke, as far as this rank knows. It
// returns nil for a team that is whole or freed.
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
