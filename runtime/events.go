package runtime

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/bootstrap"
)

// This file handles the events of the rendezvous: its functions are the bootstrap.Events of a job.
// Two goroutines of bootstrap.Client call them, one event after another: one calls told, the
// other one all others. None of them waits for another rank.

// rankDied handles the launcher's report that a rank's process has ended. Operations on the rank end with
// ErrRankDead, and so does the context of the job.
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
		return &RankError{Rank: 0, Kind: hostKind{ErrUnreachable}, Cause: fmt.Sprintf("it did not respond within %v", lost.Silence)}
	}
	return &RankError{Rank: 0, Kind: hostKind{ErrRankDead}, Cause: fmt.Sprintf("its process ended, or the network to it broke: %v", lost.Cause)}
}

// A hostKind is the kind of the loss of rank 0 where it hosted the rendezvous: the job
// ends with it. errors.Is finds ErrLauncherLost, too.
type hostKind struct{ kind error }

func (k hostKind) Error() string   { return k.kind.Error() + ", and the rendezvous with it" }
func (k hostKind) Unwrap() []error { return []error{k.kind, ErrLauncherLost} }

// told handles a message that another rank sent through the launcher.
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
