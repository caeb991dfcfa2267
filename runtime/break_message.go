package runtime

import "errors"

// A member whose collective call ends early tells the other members by a breakMessage (Team.failed).
// Each of them then breaks the team, too: its calls end with the same reason.

// breakService names the message that reports a broken team.
const breakService = "team.break"

// A breakMessage says in which call of which member a team broke, and why.
type breakMessage struct {
	Team, Call, Cause string
	Rank              int
	Kind              string       // name of the kind of error, "" for canceled
	Gone              *goneMessage // the lost rank, if that loss is the reason
	Mismatch          *MismatchError
}

// A goneMessage names a rank of the job that was lost.
type goneMessage struct {
	Rank  int
	Cause string
}

// kinds maps the names in messages to errors.
var kinds = map[string]error{"mismatch": ErrMismatch, "dead": ErrRankDead, "unreachable": ErrUnreachable,
	"exhausted": ErrExhausted}

// newBreakMessage describes how a team broke, for members in other processes.
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

// err returns the error that newBreakMessage described.
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

// toldBroken handles the message that a team is broken. The job remembers it for a team that this rank
// has still to make. For one that is freed here the message comes too late.
func (j *Job) toldBroken(m *breakMessage) {
	e := m.err()
	j.mu.Lock()
	t := j.teams[m.Team]
	if t == nil && j.mayMake(m.Team) {
		j.broken[m.Team] = e
	}
	j.mu.Unlock()
	if t != nil {
		t.breaks(e)
	}
}
