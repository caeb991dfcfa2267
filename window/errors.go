package window

import (
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Errors of a call; match them with errors.Is.
var (
	// ErrRange: target, index, length or slot beyond the window.
	ErrRange = runtime.ErrRange
	// ErrType: elements that hold pointers or have no size.
	ErrType = element.ErrType
	// ErrExhausted: the heap, or the room for attachments, is used up.
	ErrExhausted = runtime.ErrExhausted
	// ErrTeam: the team is nil or the calling rank is not in it.
	ErrTeam = runtime.ErrTeam
	// ErrFreed: the window was freed, or its job closed.
	ErrFreed = errors.New("window was freed")
	// ErrPart: the call needs the whole window, not a part of it.
	ErrPart = errors.New("not for a part of a window; call it on the whole window")
	// ErrAlignment: a part whose elements cannot begin at its offset; an alignment that is no power
	// of two up to 4096; atomics on complex numbers at no multiple of their size.
	ErrAlignment = errors.New("unsuitable alignment")
	// ErrNotHeld: an unlock without the lock.
	ErrNotHeld = errors.New("lock is not held")
	// ErrHeld: the holder of a lock freed the window, or closed the job. The holder gets it,
	// and so does a rank that waits for the lock: a [runtime.RankError] names the holder.
	ErrHeld = errors.New("lock was not released")
	// ErrNotShared: the target's memory cannot be mapped here.
	ErrNotShared = errors.New("memory of the target cannot be mapped here; use Get and Put")
	// ErrLent: the elements lie in memory that the program gave, by [Create] or [On]. Only the program can change that.
	ErrLent = errors.New("the elements lie in memory that the program gave; make another window")
	// ErrOp: an operator that no function of this package made.
	ErrOp = errors.New("no operator; make one by window.Sum, window.Max or the like")
	// ErrEnded: the request was already waited for.
	ErrEnded = fabric.ErrEnded
)

// errNull ends an operation on Null, which then returns nil.
var errNull = errors.New("target has no memory")

// An OpError names the failed operation, its rank and target, and the limits.
type OpError struct {
	Op     string // such as "Put"
	Window string
	Rank   int // caller, in the window's team
	Target int // -1 where there is none
	Index  int // first element or slot, -1 where there is none
	Count  int // elements
	Limit  int // elements or slots that the target has
	Err    error
}

// Error returns the operation, the ranks, the window and the cause.
func (e *OpError) Error() string {
	s := fmt.Sprintf("%s by rank %d on window %s", e.Op, e.Rank, e.Window)
	if e.Target >= 0 {
		s += fmt.Sprintf(" at rank %d", e.Target)
	}
	if e.Index >= 0 && !errors.Is(e.Err, ErrRange) { // an ErrRange text has the limit
		s += fmt.Sprintf(", %d from %d of %d", e.Count, e.Index, e.Limit)
	}
	return s + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *OpError) Unwrap() error { return e.Err }

// kinds lists the errors of one rank that other ranks can match, too, by the
// names under which they travel.
var kinds = map[string]error{"exhausted": runtime.ErrExhausted, "range": ErrRange, "type": ErrType, "shared": ErrNotShared, "kind": driver.ErrKind, "lent": ErrLent}

// kindOf returns the name of an error's kind, which a card carries to other members.
func kindOf(err error) string {
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			return name
		}
	}
	return ""
}

// A refusal is the error of another rank that could not make the window.
type refusal struct {
	rank  int
	cause string
	kind  error // nil if the error of that rank has no kind
}

func (e *refusal) Error() string { return fmt.Sprintf("rank %d cannot: %s", e.rank, e.cause) }
func (e *refusal) Unwrap() error { return e.kind }
