package driver

import "github.com/gopgas/gopgas/internal/blocks"

// Opcode names the operation of a work request.
type Opcode uint8

const (
	OpWrite       Opcode = iota + 1 // local segments -> remote
	OpWriteImm                      // as OpWrite, then consumes a receive and hands it Imm
	OpRead                          // remote -> local segments
	OpSend                          // local segments -> the peer's next receive
	OpFetchAdd                      // 64 bit; old value -> Local[0]
	OpCmpSwap                       // 64 bit; old value -> Local[0]
	OpAtomic                        // any AtomicOp at any width; needs AtomicInfo.Extended
	OpAccumulate                    // an AtomicOp on each of several elements; needs AtomicInfo.Extended
	OpWriteBlocks                   // local segment -> the Runs of remote; needs DeviceInfo.Blocks
	OpReadBlocks                    // the Runs of remote -> local segment; needs DeviceInfo.Blocks
	OpRecv                          // only in completions
	OpRecvImm                       // only in completions: a receive consumed by OpWriteImm
)

// String returns the name.
func (o Opcode) String() string {
	if int(o) < len(opcodeNames) {
		return opcodeNames[o]
	}
	return "UNKNOWN"
}

var opcodeNames = [...]string{"NONE", "WRITE", "WRITE_WITH_IMM", "READ", "SEND", "FETCH_ADD", "CMP_SWAP",
	"ATOMIC", "ACCUMULATE", "WRITE_BLOCKS", "READ_BLOCKS", "RECV", "RECV_WITH_IMM"}

// AtomicOp is the operation of an OpAtomic request. All of them return the old
// value in Local[0], if there is a segment; without one nothing travels back. It is also the
// operation of an OpAccumulate request.
type AtomicOp uint8

const (
	AtomicAdd AtomicOp = iota + 1
	AtomicAnd
	AtomicOr
	AtomicXor
	AtomicSwap
	AtomicCmpSwap // stores Operand where the value equals Compare
	AtomicLoad    // Operand is ignored
	AtomicStore   // as AtomicSwap without a result

	// Sums of floats, and minima and maxima. Floats are those of
	// IEEE 754, of 4 or 8 bytes. A minimum or maximum with NaN is NaN; -0 is less than 0.
	AtomicAddFloat
	AtomicMinFloat
	AtomicMaxFloat
	AtomicMinInt // two's complement
	AtomicMaxInt
	AtomicMinUint
	AtomicMaxUint

	AtomicMul // of integers, which wrap around
	AtomicMulFloat
	AtomicAddComplex // of two floats of 4 or 8 bytes, the real part first
	AtomicMulComplex
)

// Fits reports whether op is an operation and takes words of width bytes. Those of 16 bytes are
// for OpAccumulate only.
func (op AtomicOp) Fits(width int) bool {
	known := op >= AtomicAdd && op <= AtomicMulComplex
	switch width {
	case 1, 2:
		return known && !op.float() && !op.complex()
	case 4:
		return known && !op.complex()
	case 8:
		return known
	case 16:
		return op.complex() || op == AtomicSwap || op == AtomicStore || op == AtomicLoad
	}
	return false
}

func (op AtomicOp) float() bool {
	return op >= AtomicAddFloat && op <= AtomicMaxFloat || op == AtomicMulFloat
}

func (op AtomicOp) complex() bool { return op == AtomicAddComplex || op == AtomicMulComplex }

// Flags modify a work request.
type Flags uint8

const (
	// Signaled requests a completion; errors complete always.
	Signaled Flags = 1 << iota
	// Inline has the segments copied before PostSend returns. At most
	// DeviceInfo.MaxInline bytes; WRITE, WRITE_WITH_IMM, SEND, WRITE_BLOCKS and an ACCUMULATE
	// without Fetch only.
	Inline
	// Fence starts the request only after all earlier READs and atomics of the
	// QP have completed.
	Fence
	// Solicited marks a SEND or WRITE_WITH_IMM that shall wake the peer.
	Solicited
	// Announced marks a WRITE that a request posted behind it announces. It
	// takes effect even if it is canceled.
	Announced
	// Fetch has an ACCUMULATE replace its operands in Local by the earlier values.
	Fetch
)

// WholeRead is the length in bytes of the longest READ to one segment that sees
// each aligned word whole.
const WholeRead = 512

// WholeWrite is the length in bytes up to which devices with [WriteInfo.Whole]
// write the last word of a WRITE last.
const WholeWrite = 128

// MaxAccumulate is the length in bytes of the longest ACCUMULATE.
const MaxAccumulate = 64 << 10

// MaxBlocks is the size of the largest WRITE_BLOCKS, READ_BLOCKS or ACCUMULATE with runs: the bytes of
// its blocks and RunSize for each of its runs.
const MaxBlocks = 64 << 10

// RunSize is the number of bytes that each run counts towards [MaxBlocks].
const RunSize = blocks.RunSize

// A Run is Count blocks of Block bytes, whose beginnings lie Stride bytes apart. The first one
// begins At bytes behind a request's Remote address. At and Stride may be negative.
type Run = blocks.Run

// A Segment is a piece of local memory.
type Segment struct {
	Mem  []byte
	LKey Key
}

// A WorkRequest is one operation on a send queue.
type WorkRequest struct {
	ID     uint64
	Op     Opcode
	Flags  Flags
	Local  []Segment
	Remote RemoteAddr
	Imm    uint32

	// Atomics. OpFetchAdd adds Operand; OpCmpSwap stores Operand where the
	// value equals Compare. Width is 1, 2, 4 or 8 bytes for OpAtomic and the
	// address a multiple of it; OpFetchAdd and OpCmpSwap are 8 bytes wide.
	//
	// OpAccumulate applies Atomic to each element of Width bytes from Remote on, in order. Its
	// one segment has the operands, MaxAccumulate bytes at most. Each element is updated
	// atomically, all of them together are not. AtomicCmpSwap does not accumulate, and
	// AtomicLoad needs [Fetch]. With Runs, which need DeviceInfo.Blocks, the elements are those of
	// their blocks, and MaxBlocks bounds the request.
	Atomic  AtomicOp
	Width   uint8
	Operand uint64
	Compare uint64

	// Runs are the places of the bytes of OpWriteBlocks, OpReadBlocks and OpAccumulate at the peer. Their
	// blocks are as long as the one segment, which holds them one behind the other. The target applies
	// none of them if it refuses one.
	Runs []Run
}

// Length returns the number of bytes in the request's segments.
func (w *WorkRequest) Length() int {
	n := 0
	for i := range w.Local {
		n += len(w.Local[i].Mem)
	}
	return n
}

// Extent returns the places from the first byte of the request at the peer to behind its last. They count
// from the request's address. Package verbs has checked the runs.
func (w *WorkRequest) Extent() (from, to int) {
	if len(w.Runs) == 0 {
		return 0, w.Length()
	}
	_, from, to, _ = blocks.Span(w.Runs)
	return from, to
}

// A RecvRequest offers memory to one SEND, or a notice to one WRITE_WITH_IMM.
type RecvRequest struct {
	ID    uint64
	Local []Segment
}

// Status reports how a work request ended, as in enum ibv_wc_status.
type Status uint8

const (
	Success          Status = iota
	LocalLength             // IBV_WC_LOC_LEN_ERR: a SEND longer than the receive
	LocalProtection         // IBV_WC_LOC_PROT_ERR
	Flushed                 // IBV_WC_WR_FLUSH_ERR: the QP went to ERR before it
	RemoteInvalid           // IBV_WC_REM_INV_REQ_ERR: malformed at the target, such as a misaligned atomic
	RemoteAccess            // IBV_WC_REM_ACCESS_ERR: bad key, out of bounds, missing right
	RemoteOperation         // IBV_WC_REM_OP_ERR
	RetryExceeded           // IBV_WC_RETRY_EXC_ERR: the connection is lost
	ReceiverNotReady        // IBV_WC_RNR_RETRY_EXC_ERR
	Canceled                // ended by Canceler.Cancel; has no counterpart in ibverbs
	GeneralError            // IBV_WC_GENERAL_ERR
)

// String returns the name.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "unknown status"
}

var statusNames = [...]string{"success", "local length error", "local protection error", "flushed",
	"remote invalid request", "remote access error", "remote operation error", "transport retries exceeded",
	"receiver not ready", "canceled", "general error"}

// A Completion reports the end of a work request. With a Status other than
// Success only ID, Status, QP and Err are meaningful.
type Completion struct {
	ID     uint64
	Status Status
	Op     Opcode
	HasImm bool
	Imm    uint32
	Bytes  int // received, for OpRecv and OpRecvImm; read, for OpRead and OpReadBlocks
	QP     uint32
	Err    error // details of a failure where the provider knows them; may be nil
}
