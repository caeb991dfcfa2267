package driver

import (
	"context"

	"github.com/gopgas/gopgas/internal/wait"
)

// A Provider opens the devices of one transport.
type Provider interface {
	Name() string
	// Devices lists the devices that Open takes here; an empty list is no
	// error.
	Devices(ctx context.Context) ([]DeviceInfo, error)
	Open(ctx context.Context, device string, opts Options) (Context, error)
}

// Options name the bell and the event handler of a context.
type Options struct {
	// The context rings Bell when it has queued a completion or a peer has
	// changed registered memory. With nil, the context uses a bell of its own.
	Bell *wait.Bell
	// A goroutine of the provider calls OnEvent for each asynchronous event.
	// OnEvent must not block. It may be nil.
	OnEvent func(AsyncEvent)
}

// EventKind names the event that an AsyncEvent reports.
type EventKind uint8

const (
	// EventQPFatal: the connection behind a QP broke; the QP is in StateErr.
	EventQPFatal EventKind = iota + 1
	// EventDeviceFatal: the device is gone and with it all of its QPs.
	EventDeviceFatal
	// EventCompletion: a CQ that was armed has a completion ([Armer]).
	EventCompletion
)

// An AsyncEvent reports an event that belongs to no completion
// (ibv_get_async_event).
type AsyncEvent struct {
	Kind EventKind
	QP   uint32 // number of the QP that it concerns, 0 for the device
	Life uint32 // resets of the QP until then: it identifies late events of an earlier connection
	// Err is the cause as the provider saw it. It wraps ErrLost where an established
	// connection broke, or the peer's process ended.
	Err error
}

// A Context is one open device.
type Context interface {
	Info() DeviceInfo
	// RegMR makes mem usable as a source or destination with the rights in
	// access. mem must stay valid until the MR is closed.
	RegMR(ctx context.Context, mem Memory, access Access) (MR, error)
	// NewLanding makes a landing that is shut; ErrUnsupported without
	// MemoryInfo.Landings.
	NewLanding(ctx context.Context) (Landing, error)
	CreateCQ(ctx context.Context, depth int) (CQ, error)
	CreateQP(ctx context.Context, cfg QPConfig) (QP, error)
	// Close releases the device; its QPs, CQs and MRs are dead afterward.
	Close() error
}

// DeviceInfo describes a device: its name, its limits and its abilities.
type DeviceInfo struct {
	Provider string
	Name     string
	Detail   string // one line for people: address, port state, speed

	MaxQPDepth  int    // work requests outstanding on one send or receive queue
	MaxCQDepth  int    // completions held by one CQ
	MaxSegments int    // scatter/gather segments of one work request
	MaxMessage  uint64 // bytes of one work request
	MaxInline   int    // bytes that PostSend copies before it returns; see [Inline]

	Memory  MemoryInfo
	Writes  WriteInfo
	Atomics AtomicInfo

	Blocks       bool // the device takes OpWriteBlocks, OpReadBlocks and Runs of OpAccumulate
	CallingPolls bool // a Poll that finds nothing makes system calls
	SameHost     bool // the device reaches only ranks of this host
	// Apart: [QPConfig].Apart gives a queue pair a connection of its own. Several of them carry
	// more than one where a window, and not the network, bounds a connection.
	Apart bool
	// Establishes: the device calls [Attr].Established.
	Establishes bool
}

// MemoryInfo describes which memory a device's requests can name.
type MemoryInfo struct {
	// LocalKeys: segments must name registered memory by LKey. Without it a
	// zero LKey stands for memory that only the CPU knows.
	LocalKeys bool
	// Maps: the device's QPs are Mappers. A peer's memory may refuse all the same.
	Maps bool
	// Landings: the device can make a [Landing].
	Landings bool
	// OnDemand: the device commits memory with a [Demand], and has [Extents] made, ahead of a peer's access. If it
	// gets none, it refuses the request with RemoteOperation.
	OnDemand bool
}

// WriteInfo describes how a device's WRITEs leave, arrive and complete.
type WriteInfo struct {
	// LazyInline: PostSend copies of an Inline payload only the bytes that cannot
	// leave at once, so that large ones are worthwhile.
	LazyInline bool
	// Applied: a completed WRITE, too, says that all requests up to it have been
	// applied to the target's memory.
	Applied bool
	// Whole: the device writes the last word of a WRITE of aligned words last,
	// up to [WholeWrite] bytes. An atomic load that sees that word sees all of
	// the WRITE.
	Whole bool
	// Silent: a WRITE or an atomic does not ring the target's bell. A
	// WRITE_WITH_IMM with Solicited does, where a receive was posted.
	Silent bool
}

// AtomicInfo describes which atomics a device has.
type AtomicInfo struct {
	// Extended: the device understands OpAtomic, at widths 1, 2, 4 and 8.
	Extended bool
	// Pairs: its OpAccumulate takes elements of 16 bytes, too.
	Pairs bool
	// Coherent: atomics of this device and CPU atomics of the target may be mixed
	// on one word.
	Coherent bool
}
