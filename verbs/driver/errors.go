package driver

import (
	"errors"
	"fmt"
)

// Errors that providers return from calls, as opposed to completions. Match
// them with errors.Is.
var (
	ErrQueueFull   = errors.New("queue full") // poll completions, then post again
	ErrState       = errors.New("wrong queue pair state")
	ErrAccess      = errors.New("access refused") // bad key, out of bounds, missing right
	ErrUnsupported = errors.New("not supported by this device")
	ErrNoDevice    = errors.New("no usable device") // of Open: this host or this program has none
	ErrClosed      = errors.New("closed")
	ErrInvalid     = errors.New("invalid argument")
	ErrOverrun     = errors.New("completion queue overrun") // completions were lost; the CQ is unusable
	ErrLost        = errors.New("connection lost")
	ErrKind        = errors.New("the device does not register this kind of memory")
	ErrExhausted   = errors.New("exhausted") // memory, or the file descriptors of a process
)

// A KindError is the error of a RegMR whose device does not take the kind of the memory. It wraps
// [ErrKind].
type KindError struct {
	Kind     Kind
	Provider string
	Err      error // of the system, or nil
}

// Error returns the kind, the provider and the error of the system.
func (e *KindError) Error() string {
	s := fmt.Sprintf("provider %s: %v: %v", e.Provider, ErrKind, e.Kind)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap lets errors.Is find ErrKind and the error of the system.
func (e *KindError) Unwrap() []error {
	if e.Err == nil {
		return []error{ErrKind}
	}
	return []error{ErrKind, e.Err}
}
