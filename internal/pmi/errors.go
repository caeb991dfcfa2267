package pmi

import (
	"errors"
	"fmt"
)

var (
	// ErrWire: bytes that are no message of this protocol.
	ErrWire = errors.New("malformed PMI message")
	// ErrUsed: this process, or the one that started it, has opened the connection before.
	ErrUsed = errors.New("the connection with the process manager was used before")
	// ErrNotFound: the key-value space has no value for the key.
	ErrNotFound = errors.New("the process manager has no such key")
	// ErrLost: the process manager ended the connection.
	ErrLost = errors.New("the process manager ended the connection")
)

// A VariableError is a variable of the environment that leads to no process manager.
type VariableError struct{ Name, Value, Want string }

func (e *VariableError) Error() string {
	return fmt.Sprintf("environment variable %s=%q: %s", e.Name, e.Value, e.Want)
}

// A RefusedError is a request that the process manager refuses.
type RefusedError struct {
	Command string // the request
	Code    string // of the response
	Reason  string // the manager's own words; may be empty
}

func (e *RefusedError) Error() string {
	text := fmt.Sprintf("the process manager refuses %q with code %s", e.Command, e.Code)
	if e.Reason != "" {
		text += ": " + e.Reason
	}
	return text
}
