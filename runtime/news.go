package runtime

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

// rankDied handles the launcher's report that a rank's process has ended.
func (j *Job) rankDied(rank int, cause string) {
	j.fabric.RankDied(rank, cause)
	j.end(&RankError{Rank: rank, Kind: ErrRankDead, Cause: cause})
}

// jobAborted ends all calls of this rank because a rank aborted the job.
func (j *Job) jobAborted(rank int, cause string) {
	j.giveUp(&RankError{Rank: rank, Kind: ErrAborted, Cause: cause}, fmt.Sprintf("by rank %d: %s", rank, cause))
}

// launcherLost ends the job of a process without a launcher, or with a silent one. The
// launcher would report no death to it any more, and would not clean up after it. If rank 0
// hosted the rendezvous, that rank is lost.
func (j *Job) launcherLost(err error) {
	if e := hostLost(err); e != nil {
		j.abort(e)
		j.fabric.EndWith(e)
		return
	}
	j.giveUp(&RankError{Rank: j.fabric.Rank(), Kind: ErrLauncherLost, Cause: err.Error()}, err.Error())
}

// giveUp ends all calls at this rank with e. Operations on other ranks get cause as text.
func (j *Job) giveUp(e *RankError, cause string) {
	j.abort(e)
	j.fabric.End(e.Kind, cause)
}

// hostLost returns the loss of rank 0, which hosted the rendezvous, or nil if a launcher
// did.
func hostLost(err error) *RankError {
	var lost *bootstrap.LostError
	switch {
	case !errors.As(err, &lost) || !lost.Hosted:
		return nil
	case lost.Silence > 0:
		return &RankError{Rank: 0, Kind: hostKind{ErrUnreachable}, Cause: fmt.Sprintf("it did not answer within %v", lost.Silence)}
	}
	return &RankError{Rank: 0, Kind: hostKind{ErrRankDead}, Cause: fmt.Sprintf("its process ended, or the network to it broke: %v", lost.Cause)}
}

// A hostKind is the kind of the loss of rank 0 where it hosted the rendezvous: the job
// ends with it. errors.Is finds ErrLauncherLost, too.
type hostKind struct{ kind error }

func (k hostKind) Error() string   { return k.kind.Error() + ", and the rendezvous with it" }
func (k hostKind) Unwrap() []error { return []error{k.kind, ErrLauncherLost} }

// breakService names the message that reports a broken team.
const breakService = "team.break"

type breakMessage struct {
	Team, Call, Cause string
	Rank              int
	Kind              string       // name of the kind of error, "" for canceled
	Gone              *goneMessage // the lost rank, if that loss is the reason
	Mismatch          *MismatchError
}

type goneMessage struct {
	Rank  int
	Cause string
}

// kinds maps the names in messages to errors.
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

// err returns the message as an error.
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

// told handles a message of another rank.
func (j *Job) told(from int, service string, payload []byte) {
	switch service {
	case breakService:
		take(payload, func(m breakMessage) { j.toldBroken(&m) })
	case inquiryService:
		take(payload, func(m inquiryMessage) { j.handleInquiry(from, m) })
	}
}

// take decodes a message, and drops one that it cannot decode.
func take[M any](payload []byte, handle func(M)) {
	var m M
	if json.Unmarshal(payload, &m) == nil {
		handle(m)
	}
}

// toldBroken handles the message that a team is broken.
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
