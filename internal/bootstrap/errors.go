package bootstrap

import (
	"errors"
	"fmt"
)

var (
	// ErrClosed: this client has said goodbye.
	ErrClosed = errors.New("bootstrap client closed")
	// ErrLost: the connection to the rendezvous broke; grun is gone, or silent.
	ErrLost = errors.New("rendezvous lost")
	// ErrSilent: the rendezvous gave no answer for the bound of a silence.
	ErrSilent = errors.New("launcher does not answer")
	// ErrHandshake: the server, or the client, did not prove that it knows the
	// job's secret.
	ErrHandshake = errors.New("bootstrap handshake failed: check that " + EnvAddr + " and " + EnvSecret + " come from the same grun")
	// ErrTooLarge: a message is longer than MaxMessage.
	ErrTooLarge = fmt.Errorf("bootstrap message above %d MiB: send bulk data through a window", MaxMessage>>20)
	// ErrOverflow: the addressee does not take its messages; too many wait for it.
	ErrOverflow = errors.New("bootstrap messages pile up: the addressee is stopped or its handlers are stuck")
	// ErrWire: bytes that are no message of this protocol.
	ErrWire = errors.New("malformed bootstrap message")
	// ErrArgument: a rank or member list that the job does not have.
	ErrArgument = errors.New("invalid bootstrap argument")
	// ErrMismatch: ranks gave different member lists to one exchange, or one rank
	// came twice.
	ErrMismatch = errors.New("exchange mismatch: all members must name the same key and members, once")
)

// An EnvError is a variable of the environment with a value that it cannot have.
type EnvError struct{ Name, Value, Want string }

func (e *EnvError) Error() string {
	return fmt.Sprintf("environment variable %s=%q: %s", e.Name, e.Value, e.Want)
}

// A RefusedError says why the server refuses a rank that knows the secret.
type RefusedError struct {
	Rank   int
	Reason string
	Joined bool // the rank has joined before
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("rank %d may not join: %s", e.Rank, e.Reason)
}

// A PeerDeadError reports that a rank answers no more: it died or, if Left is
// set, it said goodbye.
type PeerDeadError struct {
	Rank  int
	Cause string
	Left  bool
}

func (e *PeerDeadError) Error() string {
	if e.Left {
		return fmt.Sprintf("rank %d has left the job", e.Rank)
	}
	return fmt.Sprintf("rank %d is dead: %s", e.Rank, e.Cause)
}

// An AbandonedError reports that this rank gave up an exchange to which it had
// contributed its bytes. The other members may succeed.
type AbandonedError struct{ Cause error }

func (e *AbandonedError) Error() string { return e.Cause.Error() }
func (e *AbandonedError) Unwrap() error { return e.Cause }

// A RemoteError carries the error of a peer's Call handler.
type RemoteError struct {
	Rank    int
	Service string
	Message string
}

func (e *RemoteError) Error() string {
	return fmt.Sprintf("%s at rank %d: %s", e.Service, e.Rank, e.Message)
}
