package collectives

import (
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/channel"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/runtime"
)

// Errors of a call's arguments; match them with errors.Is. Errors that concern other
// members are package runtime's: ErrRankDead, ErrTeamBroken, ErrMismatch.
var (
	// ErrLength: slices whose lengths do not fit the call.
	ErrLength = errors.New("lengths do not fit")
	// ErrOverlap: input and output share memory without being the same.
	ErrOverlap = errors.New("input and output overlap; give the same slice, or two that are apart")
	// ErrRange: a root that the team does not have.
	ErrRange = runtime.ErrRange
	// ErrType: elements that hold pointers or have no size.
	ErrType = element.ErrType
	// ErrOp: an operator that was not made by this package, has no name or no
	// function, or that its elements do not have.
	ErrOp = errors.New("not an operator of these elements; use one of this package's, or NewOp with a name and a function")
	// ErrAlgorithm: an algorithm that is unknown, or cannot do the call.
	ErrAlgorithm = errors.New("unusable algorithm")
	// ErrCorrupt: the memory through which members send messages was overwritten.
	ErrCorrupt = channel.ErrCorrupt
	// ErrFreed: the plan was freed.
	ErrFreed = errors.New("it was freed; plan the call again")
	// ErrBusy: the plan was started and not waited for.
	ErrBusy = errors.New("plan is under way: wait for its request first")
)

// An OpError says which call of which team failed.
type OpError struct {
	Op   string // such as "AllReduce of 4 float64, Sum"
	Team string
	Rank int // that called, in the team
	Err  error
}

// Error returns the call, the team, the rank and the cause.
func (e *OpError) Error() string {
	return fmt.Sprintf("%s by rank %d of team %s: %v", e.Op, e.Rank, e.Team, e.Err)
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// lengthError says how long a slice should be.
func lengthError(what string, got, want int) error {
	return fmt.Errorf("%s has %d elements, not %d: %w", what, got, want, ErrLength)
}
