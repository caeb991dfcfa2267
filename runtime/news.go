package runtime

import (
	"encoding/json"
	"fmt"
)

// rankDied takes the launcher's word that a rank's process is gone.
func (j *Job) rankDied(rank int, cause string) {
	j.fabric.RankDied(rank, cause)
	j.end(&RankError{Rank: rank, Kind: ErrRankDead, Cause: cause})
}

// jobAborted ends everything since a rank gave the job up.
func (j *Job) jobAborted(rank int, cause string) {
	j.abort(&RankError{Rank: rank, Kind: ErrAborted, Cause: cause})
	j.fabric.End(ErrAborted, fmt.Sprintf("by rank %d: %s", rank, cause))
}

// launcherLost ends the job of a process whose launcher is gone: it could not
// be told of deaths any more, and nobody would clean up after it.
func (j *Job) launcherLost(err error) {
	j.jobAborted(j.fabric.Rank(), err.Error())
}

// breakService is the message that tells members of a broken team.
const breakService = "team.break"

type breakMessage struct {
	Team, Call, Cause string
	Rank              int
	Kind              string // name of the kind of error, "" for cancelled
}

// kinds are the errors that travel by name.
var kinds = map[string]error{"mismatch": ErrMismatch, "dead": ErrRankDead, "unreachable": ErrUnreachable,
	"exhausted": ErrExhausted}

// told takes a message of another rank.
func (j *Job) told(_ int, service string, payload []byte) {
	var m breakMessage
	if service != breakService || json.Unmarshal(payload, &m) != nil {
		return
	}
	e := &TeamError{Team: m.Team, Rank: m.Rank, Call: m.Call, Kind: kinds[m.Kind], Cause: m.Cause}
	j.mu.Lock()
	t := j.teams[m.Team]
	if t == nil {
		j.broken[m.Team] = e
	}
	j.mu.Unlock()
	if t != nil {
		t.breaks(e)
	}
}
