package fabric

import (
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// These errors say how ranks and jobs ended. Package runtime exports them to users.
var (
	ErrRankDead    = errors.New("rank is dead")
	ErrUnreachable = errors.New("rank is unreachable")
	ErrAborted     = errors.New("job aborted")
	ErrClosed      = arena.ErrClosed
	// ErrLeft is an ErrClosed: the program of a rank makes no more calls.
	ErrLeft = fmt.Errorf("%w by the rank: its body returned, or called Job.Close; have it signal, send or close its pipes before", ErrClosed)
	// ErrLauncherLost is an ErrAborted: no rank aborted the job, but its launcher
	// is gone or does not respond.
	ErrLauncherLost = fmt.Errorf("%w: launcher lost", ErrAborted)
)

// A RankError says how a rank was lost. errors.Is finds its Kind.
type RankError struct {
	Rank  int    // in the world
	Kind  error  // ErrRankDead, ErrUnreachable, driver.ErrExhausted, or the error of a transfer
	Cause string // as the launcher or the provider saw it
}

func (e *RankError) Error() string {
	if e.Cause == "" {
		return fmt.Sprintf("rank %d: %v", e.Rank, e.Kind)
	}
	return fmt.Sprintf("rank %d: %v (%s)", e.Rank, e.Kind, e.Cause)
}

func (e *RankError) Unwrap() error { return e.Kind }

// exhausted returns the error of a rank that has no memory or descriptors left for a
// connection. It returns nil for other errors.
func exhausted(rank int, err error) *RankError {
	if !errors.Is(err, driver.ErrExhausted) {
		return nil
	}
	cause := err.Error()
	var none *memory.DescriptorError
	if errors.As(err, &none) {
		cause = none.Error()
	}
	return &RankError{Rank: rank, Kind: driver.ErrExhausted, Cause: cause}
}
