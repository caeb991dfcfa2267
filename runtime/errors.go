package runtime

import (
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/bootstrap"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
)

// Calls return these errors; match them with errors.Is.
var (
	// ErrRankDead: the process of a rank ended without closing the job.
	ErrRankDead = fabric.ErrRankDead
	// ErrUnreachable: a rank gave no sign of life for the peer timeout.
	ErrUnreachable = fabric.ErrUnreachable
	// ErrTeamBroken: a member's collective call failed or was canceled.
	ErrTeamBroken = errors.New("team is broken")
	// ErrTeamFreed: [Team.Free] gave back the memory of the team's calls.
	ErrTeamFreed = errors.New("team was freed")
	// ErrAborted: a rank called Abort or its body returned an error.
	ErrAborted = fabric.ErrAborted
	// ErrLauncherLost: grun died, or sent nothing for the peer timeout. It is an
	// ErrAborted, too. In a job without grun, rank 0 did: then it is also an ErrRankDead
	// or ErrUnreachable, and names rank 0.
	ErrLauncherLost = fabric.ErrLauncherLost
	// ErrClosed: the job, or the object of the call, is closed.
	ErrClosed = fabric.ErrClosed
	// ErrJoinedBefore: this rank has joined its job before, in this process or in another.
	ErrJoinedBefore = errors.New("this rank has joined its job before: call Run or Init once, do all work in one body, and start each rank once")
	// ErrStart: the job did not start, or this process may not join it; a [StartError].
	ErrStart = errors.New("job did not start")
	// ErrMismatch: the ranks of a team made different collective calls, or gave one
	// call different arguments that must agree.
	ErrMismatch = errors.New("collective calls do not match")
	// ErrExhausted: the rank's heap has no room left, or its process no file
	// descriptors. If the rank may be another one, a [RankError] names it.
	ErrExhausted = arena.ErrExhausted
	// ErrTeam: the team is nil, as Split returns it to ranks that join no team.
	ErrTeam = errors.New("not a team of this rank")
	// ErrRange: a rank that the team does not have, or a number out of an option's bounds.
	ErrRange = errors.New("out of range")
)

// A RankError reports the failure of a rank; errors.As finds it in the errors of all
// packages.
type RankError = fabric.RankError

// A StartError says why a job did not start. errors.Is finds [ErrStart] and the reason.
type StartError struct {
	Missing []int // ranks that did not join in time; nil for other reasons
	Reason  error
}

// Error returns the rank, the reason and the missing ranks.
func (e *StartError) Error() string { return fmt.Sprintf("%v: %v", ErrStart, e.Reason) }

// Unwrap lets errors.Is and errors.As find the reason.
func (e *StartError) Unwrap() []error { return []error{ErrStart, e.Reason} }

// startError turns an error of joining into one of this package.
func startError(err error) error {
	var refused *bootstrap.RefusedError
	var missing *bootstrap.MissingError
	var address *bootstrap.AddressError
	var host *bootstrap.HostError
	switch {
	case errors.As(err, &refused) && refused.Joined:
		return fmt.Errorf("%w (%w)", ErrJoinedBefore, err)
	case errors.As(err, &missing):
		return &StartError{Missing: missing.Ranks, Reason: err}
	case errors.As(err, &refused), errors.As(err, &address), errors.As(err, &host), errors.Is(err, bootstrap.ErrHandshake):
		return &StartError{Reason: err}
	}
	return explain(err)
}

// A TeamError names the rank that broke a team, and the reason. errors.Is finds
// [ErrTeamBroken] and the errors in Reason. For a freed team it finds [ErrTeamFreed]
// alone.
type TeamError struct {
	Team   string // the team's name in the job
	Rank   int    // the rank that broke it, in the world
	Call   string // the collective call that ended early there
	Reason error  // a *RankError, ErrMismatch and so on; nil when the call was canceled
	Cause  string
}

// Error returns the team, the rank, its call and the reason.
func (e *TeamError) Error() string {
	var differ *MismatchError
	if e.freed() {
		return fmt.Sprintf("team %s: %v; go on with another", e.Team, ErrTeamFreed)
	}
	if errors.As(e.Reason, &differ) { // its text names the team and both calls
		return differ.Error() + "; the team is broken, go on with another"
	}
	return fmt.Sprintf("team %s is broken: %s at rank %d ended early (%s); go on with another team",
		e.Team, e.Call, e.Rank, e.Cause)
}

// Unwrap lets errors.Is and errors.As find the reason.
func (e *TeamError) Unwrap() []error {
	switch {
	case e.freed():
		return []error{ErrTeamFreed}
	case e.Reason == nil:
		return []error{ErrTeamBroken}
	}
	return []error{ErrTeamBroken, e.Reason}
}

func (e *TeamError) freed() bool { return e.Reason == ErrTeamFreed } //nolint:errorlint // as release sets it

// A MismatchError names two collective calls that met.
type MismatchError struct {
	Team           string
	Rank, Other    int    // world ranks
	Call, OtherDid string // the call of each
}

// Error returns the team, the two ranks and their calls.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("team %s: %v: %s while %s", e.Team, ErrMismatch, did(e.Rank, e.Call), did(e.Other, e.OtherDid))
}

// did describes the call of a rank. Run closes the job for a body that returns.
func did(rank int, call string) string {
	if call == team.Close.String() {
		return fmt.Sprintf("rank %d's body returned, or called %s", rank, call)
	}
	return fmt.Sprintf("rank %d called %s", rank, call)
}

// Unwrap returns ErrMismatch.
func (e *MismatchError) Unwrap() error { return ErrMismatch }
