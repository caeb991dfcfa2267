package bootstrap

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrClosed: this client has said goodbye.
	ErrClosed = errors.New("bootstrap client closed")
	// ErrLost: the connection to the rendezvous broke, or it is silent: a *LostError.
	ErrLost = errors.New("rendezvous lost")
	// ErrSilent: the rendezvous gave no response for the bound of a silence.
	ErrSilent = errors.New("launcher does not respond")
	// ErrHandshake: the server, or the client, did not prove that it knows the
	// job's secret.
	ErrHandshake = errors.New("bootstrap handshake failed: check that " + EnvAddr + " and " + EnvSecret + " (or " + EnvSecretFile + ") are those of one job, and " + EnvRun + " too if it is set")
	// errNoChallenge: a server that began no handshake.
	errNoChallenge = errors.New("no rendezvous of this version of gopgas answers there")
	// ErrTooLarge: a message is longer than MaxMessage.
	ErrTooLarge = fmt.Errorf("bootstrap message above %d MiB: send bulk data through a window", MaxMessage>>20)
	// ErrOverflow: the addressee does not take its messages; too many wait for it.
	ErrOverflow = errors.New("bootstrap messages pile up: the addressee is stopped or its handlers are stuck")
	// ErrWire: bytes that are no message of this protocol.
	ErrWire = errors.New("malformed bootstrap message")
	// errVersion: a message of another version of this protocol.
	errVersion = fmt.Errorf("%w, of another version of gopgas", ErrWire)
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

// A LostError reports that the rendezvous is gone or silent.
type LostError struct {
	Hosted  bool          // it was in the process of rank 0, not in a launcher
	Silence time.Duration // it gave no response for so long; 0: the connection ended
	Cause   error         // of the end of the connection
}

// Error names the process that ended and, for silence, the time and the variable that allows more.
func (e *LostError) Error() string {
	host, end := "grun", "died or was killed"
	if e.Hosted {
		host, end = "rank 0, which hosts it,", "ended, or the network to it broke"
	}
	if tlsFailed(e.Cause) {
		return fmt.Sprintf("%v: TLS failed (%v): look for what changes connections between this host and its host", ErrLost, e.Cause)
	}
	if e.Silence == 0 {
		return fmt.Sprintf("%v: %s %s (%v)", ErrLost, host, end, e.Cause)
	}
	return fmt.Sprintf("%v: %v within %v: %s is stopped, or its host is cut off or overloaded; continue it, or raise %s",
		ErrLost, ErrSilent, e.Silence, host, EnvPeerTimeout)
}

// Unwrap lets errors.Is find ErrLost, ErrSilent and the cause.
func (e *LostError) Unwrap() []error {
	if e.Silence > 0 {
		return []error{ErrLost, ErrSilent}
	}
	return []error{ErrLost, e.Cause}
}

// A MissingError reports that the job did not start: ranks did not join in time.
type MissingError struct {
	Ranks []int // nil: some, which the process manager does not name
	Wait  time.Duration
	Cause error // of the last try to reach rank 0; may be nil
}

// Error names the ranks that did not join, as far as this rank knows them.
func (e *MissingError) Error() string {
	late := "some ranks"
	if e.Ranks != nil {
		late = Ranks(e.Ranks)
	}
	text := fmt.Sprintf("%s did not join within %v: start all ranks within that time, or raise %s", late, e.Wait, EnvStartTimeout)
	if e.Cause != nil {
		text += fmt.Sprintf(" (%v)", e.Cause)
	}
	return text
}

func (e *MissingError) Unwrap() error { return e.Cause }

// A HostError reports, at other ranks, that rank 0 does not host the rendezvous.
type HostError struct{ Reason string } // in rank 0's words

func (e *HostError) Error() string { return "rank 0 failed: " + e.Reason }

// A RefusedError says why the server refuses a rank that knows the secret.
type RefusedError struct {
	Rank   int
	Reason string
	Joined bool // the rank has joined before
}

func (e *RefusedError) Error() string {
	if e.Rank == AnyRank {
		return "this process may not join: " + e.Reason
	}
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
