package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
)

// rankDied takes the launcher's word that a rank's process is gone.
func (j *Job) rankDied(rank int, cause string) {
	j.fabric.RankDied(rank, cause)
	j.end(&RankError{Rank: rank, Kind: ErrRankDead, Cause: cause})
}

// jobAborted ends everything since a rank gave the job up.
func (j *Job) jobAborted(rank int, cause string) {
	j.giveUp(&RankError{Rank: rank, Kind: ErrAborted, Cause: cause}, fmt.Sprintf("by rank %d: %s", rank, cause))
}

// launcherLost ends the job of a process whose launcher is gone, or silent: the launcher
// tells it of no death any more, and does not clean up after it.
func (j *Job) launcherLost(err error) {
	j.giveUp(&RankError{Rank: j.fabric.Rank(), Kind: ErrLauncherLost, Cause: err.Error()}, err.Error())
}

// giveUp ends everything at this rank with e. Operations on other ranks get cause as text.
func (j *Job) giveUp(e *RankError, cause string) {
	j.abort(e)
	j.fabric.End(e.Kind, cause)
}

// breakService is the message that tells members of a broken team.
const breakService = "team.break"

type breakMessage struct {
	Team, Call, Cause string
	Rank              int
	Kind              string       // name of the kind of error, "" for cancelled
	Gone              *goneMessage // the rank that is gone, if that is why
	Mismatch          *MismatchError
}

type goneMessage struct {
	Rank  int
	Cause string
}

// kinds are the errors that travel by name.
var kinds = map[string]error{"mismatch": ErrMismatch, "dead": ErrRankDead, "unreachable": ErrUnreachable,
	"exhausted": ErrExhausted}

// newBreakMessage describes how a team broke.
func newBreakMessage(e *TeamError) breakMessage {
	m := breakMessage{Team: e.Team, Call: e.Call, Cause: e.Cause, Rank: e.Rank}
	for name, kind := range kinds {
		if errors.Is(e.Reason, kind) {
			m.Kind = name
		}
	}
	var gone *RankError
	if errors.As(e.Reason, &gone) {
		m.Gone = &goneMessage{gone.Rank, gone.Cause}
	}
	errors.As(e.Reason, &m.Mismatch)
	return m
}

// err is what the message says, as an error.
func (m *breakMessage) err() *TeamError {
	e := &TeamError{Team: m.Team, Rank: m.Rank, Call: m.Call, Reason: kinds[m.Kind], Cause: m.Cause}
	switch {
	case m.Mismatch != nil:
		e.Reason = m.Mismatch
	case m.Gone != nil && e.Reason != nil:
		e.Reason = &RankError{Rank: m.Gone.Rank, Kind: e.Reason, Cause: m.Gone.Cause}
	}
	return e
}

// told takes a message of another rank.
func (j *Job) told(from int, service string, payload []byte) {
	switch service {
	case breakService:
		take(payload, func(m breakMessage) { j.toldBroken(&m) })
	case askService:
		take(payload, func(m askMessage) { j.asked(from, m) })
	}
}

// take decodes a message; what is none is dropped.
func take[M any](payload []byte, handle func(M)) {
	var m M
	if json.Unmarshal(payload, &m) == nil {
		handle(m)
	}
}

// toldBroken takes the word that a team is broken.
func (j *Job) toldBroken(m *breakMessage) {
	e := m.err()
	j.remember(e)
	j.mu.Lock()
	t := j.teams[m.Team]
	j.mu.Unlock()
	if t != nil {
		t.breaks(e)
	}
}
