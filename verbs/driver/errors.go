package driver

import "errors"

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
	ErrExhausted   = errors.New("exhausted") // memory, or the file descriptors of a process
)
