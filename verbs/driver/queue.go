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

// An Armer is a CQ of a device that rings the bell only on request.
type Armer interface {
	// Arm makes the device ring the bell, and report EventCompletion, once, at
	// the next completion that it queues. With solicited, the device waits for
	// a failure, or for the receive of a [Solicited] request. Completions in
	// the queue do not count: poll after arming (ibv_req_notify_cq). Wrappers
	// return ErrUnsupported around a CQ that is no Armer.
	Arm(solicited bool) error
}

// QPConfig sizes a queue pair. Both queues complete to the named CQs, which
// belong to the same context.
type QPConfig struct {
	SendCQ, RecvCQ       CQ
	SendDepth, RecvDepth int
	MaxSegments          int
	MaxInline            int
	Apart                bool // give the queue pair a connection of its own; see [DeviceInfo].Apart
}

// A QP is one reliable connection to one peer.
type QP interface {
	Num() uint32
	// Address returns the address for the peer's Modify to StateRTR. It is
	// opaque, may hold a secret, and travels through an authenticated exchange
	// only.
	Address() []byte
	// Modify moves to a state that package verbs found legal. StateErr flushes
	// outstanding requests. StateReset forgets them without completions, and
	// removes the QP's completions that were not polled from its CQs.
	Modify(ctx context.Context, to State, attr Attr) error
	// PostSend queues work requests in order and returns how many it took. If n
	// < len(wrs), the error says why PostSend refused the next one; the first n
	// are under way all the same. The provider keeps no reference to wrs or to
	// their segment slices after it returns; the memory that the segments name
	// belongs to it until completion, unless [Inline]. Once a request has
	// failed or was canceled, package verbs counts no slots until StateReset: a
	// provider returns ErrQueueFull for its own full queue too.
	PostSend(wrs []WorkRequest) (n int, err error)
	PostRecv(wrs []RecvRequest) (n int, err error)
	Close() error
}

// Attr carries what a transition needs.
type Attr struct {
	Peer []byte // RTR: the peer QP's Address
	// Established is for RTR, on devices with [DeviceInfo].Establishes. A goroutine of the provider calls it once the peer
	// has connected its end, too. If the QP breaks or is closed before, no goroutine does. It must not block. It may be nil.
	Established func()
	Timeout     time.Duration // RTS: how long without a sign of life until EventQPFatal; 0 takes the default
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

// String returns the name.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

var stateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "ERR"}

// A Mapper reaches its peer's memory by loads and stores: a QP, or a Neighbor.
type Mapper interface {
	// Map returns n bytes of the peer's memory at remote. It checks key, bounds
	// and rights once. The slice stays mapped as long as the process lives:
	// after the peer deregisters, it reads garbage but never faults.
	Map(ctx context.Context, remote RemoteAddr, n int, access Access) ([]byte, error)
	// PeerBell returns the bell to ring after a mapped store for which the peer
	// may be waiting.
	PeerBell() wait.Ringer
}

// A Neighborhood is a Context whose memory other processes of the host map without a QP. They need
// the address of the device only, and its process takes no part.
type Neighborhood interface {
	// Address returns the address of this device. It holds tokens, as the address of a QP does.
	Address() []byte
	// Neighbor returns the Neighbor with an address. It is valid until the Context closes. Neighbor
	// returns ErrLost if the device's process has ended, unless its memory is mapped already.
	Neighbor(ctx context.Context, address []byte) (Neighbor, error)
}

// A Neighbor is the Mapper to the memory of a device of another process.
type Neighbor interface {
	Mapper
	// BellMemory returns the whole piece of memory in which the bell lies, such as a memfd. It is mapped
	// with the bell, so what lies there needs no key.
	BellMemory() []byte
}

// A Canceler is a QP that can give a posted request's memory back early.
type Canceler interface {
	// Cancel ends the request. When it returns, the provider no longer reads or
	// writes the memory of the request's segments. A completion is or will be
	// queued: Canceled, or that of an earlier end. The request may or may not
	// have taken effect at the target. An Announced WRITE takes effect in its
	// place, from a copy. Cancel ignores unknown ids.
	Cancel(id uint64)
}
