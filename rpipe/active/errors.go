package active

import (
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/rpipe"
)

// A RemoteError reports why a call failed at its target. errors.Is finds its Kind.
type RemoteError struct {
	Rank    int    // the target
	Handler string // the name
	Kind    error  // ErrHandler, ErrNoHandler, ErrPanicked, or rpipe.ErrTooLarge for its reply
	Text    string // the handler's error or panic: up to 256 bytes
}

// Error returns the call, its target, the kind and the text. Kind: local.
func (e *RemoteError) Error() string {
	s := fmt.Sprintf("call of %q at rank %d: %v", e.Handler, e.Rank, e.Kind)
	if e.Text != "" {
		s += ": " + e.Text
	}
	return s
}

// Unwrap returns the kind. Kind: local.
func (e *RemoteError) Unwrap() error { return e.Kind }

// The kinds of a RemoteError.
var (
	// ErrHandler: the handler returned an error. The RemoteError has its text.
	ErrHandler = errors.New("the handler failed")
	// ErrNoHandler: the rank has no handler of that name.
	ErrNoHandler = errors.New("no handler of that name: register it at all ranks in active.Open")
	// ErrPanicked: the handler panicked or ended its goroutine. Its rank goes on.
	ErrPanicked = errors.New("the handler panicked")
)

// err returns the kind of the RemoteError.
func (r reason) err() error {
	switch r {
	case noHandler:
		return ErrNoHandler
	case panicked:
		return ErrPanicked
	case replyTooLarge:
		return rpipe.ErrTooLarge
	}
	return ErrHandler
}
