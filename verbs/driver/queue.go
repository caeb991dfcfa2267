package driver

import (
	"context"
	"time"

	"github.com/gopgas/gopgas/internal/wait"
)

// A CQ collects completions.
type CQ interface {
	// Poll fills wc with up to len(wc) completions and makes progress on the
	// device. It neither blocks nor allocates.
	Poll(wc []Completion) (int, error)
	// Wait returns nil when a Poll is worth it, or the cause of ctx's end.
	Wait(ctx context.Context) error
	Close() error
}

// An Armer is a CQ whose device rings the bell only after it was asked to.
type Armer interface {
	// Arm has the bell rung, and EventCompletion told, at the next completion
	// that is queued: once. With solicited it takes a failure, or a receive
	// whose sender asked for it ([Solicited]). What is queued already does not
	// count: poll after arming (ibv_req_notify_cq). Wrappers return
	// ErrUnsupported around a CQ that is no Armer.
	Arm(solicited bool) error
}

// QPConfig sizes a queue pair. Both queues complete to the named CQs, which
// belong to the same context.
type QPConfig struct {
	SendCQ, RecvCQ       CQ
	SendDepth, RecvDepth int
	MaxSegments          int
	MaxInline            int
}

// A QP is one reliable connection to one peer.
type QP interface {
	Num() uint32
	// Address is what the peer's Modify to StateRTR needs. It is opaque, may
	// hold a secret, and travels through an authenticated exchange only.
	Address() []byte
	// Modify moves to a state that package verbs found legal. StateErr flushes
	// what is outstanding. StateReset forgets it without completions, and takes
	// the QP's completions that were not polled out of its CQs.
	Modify(ctx context.Context, to State, attr Attr) error
	// PostSend queues work requests in order and returns how many it took.
	// n < len(wrs) comes with an error that says why the next one was refused;
	// the first n are under way all the same. The provider keeps no reference
	// to wrs or to their segment slices after it returns; the memory that
	// the segments name belongs to it until completion, unless [Inline].
	// Once a request has failed or was cancelled, package verbs counts slots no
	// more until StateReset: a provider's own full queue is ErrQueueFull too.
	PostSend(wrs []WorkRequest) (n int, err error)
	PostRecv(wrs []RecvRequest) (n int, err error)
	Close() error
}

// Attr carries what a transition needs.
type Attr struct {
	Peer    []byte        // RTR: the peer QP's Address
	Timeout time.Duration // RTS: how long without a sign of life until EventQPFatal; 0 takes the default
}

// State is a queue pair's state, as in ibv_modify_qp.
type State uint8

const (
	StateReset State = iota
	StateInit        // receives can be posted
	StateRTR         // ready to receive: connected
	StateRTS         // ready to send
	StateSQD         // send queue drained: posts are taken, none starts
	StateErr         // everything posted is flushed
)

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

var stateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "ERR"}

// A Mapper is a QP whose peer's memory can be reached by loads and stores.
type Mapper interface {
	// Map returns n bytes of the peer's memory at remote, after checking key,
	// bounds and rights once. The slice stays mapped as long as the process
	// lives: after the peer deregisters, it reads garbage but never faults.
	Map(ctx context.Context, remote RemoteAddr, n int, access Access) ([]byte, error)
	// PeerBell rings the peer after a mapped store that it may be waiting for.
	PeerBell() wait.Ringer
}

// A Canceler is a QP that can give a posted request's memory back early.
type Canceler interface {
	// Cancel ends the request: when it returns, the provider will neither read
	// nor write the memory of the request's segments again, and a completion
	// (Canceled, or what it came to before) is or will be queued. Whether it took
	// effect at the target is open, but an Announced WRITE does so in its place,
	// from a copy. Unknown ids are ignored.
	Cancel(id uint64)
}
