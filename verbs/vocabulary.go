package verbs

import "github.com/gopgas/gopgas/verbs/driver"

// The vocabulary shared with providers; package driver documents it.
type (
	WorkRequest = driver.WorkRequest
	RecvRequest = driver.RecvRequest
	Segment     = driver.Segment
	Run         = driver.Run
	Completion  = driver.Completion
	RemoteAddr  = driver.RemoteAddr
	Key         = driver.Key
	Memory      = driver.Memory
	Kind        = driver.Kind
	Access      = driver.Access
	Landing     = driver.Landing
	State       = driver.State
	Attr        = driver.Attr
	Opcode      = driver.Opcode
	AtomicOp    = driver.AtomicOp
	Status      = driver.Status
	Flags       = driver.Flags
	DeviceInfo  = driver.DeviceInfo
	MemoryInfo  = driver.MemoryInfo
	Demand      = driver.Demand
	Extents     = driver.Extents
	WriteInfo   = driver.WriteInfo
	AtomicInfo  = driver.AtomicInfo
	Options     = driver.Options
	AsyncEvent  = driver.AsyncEvent
	EventKind   = driver.EventKind
)

// Memory kinds.
const (
	KindHeap  = driver.KindHeap
	KindMemfd = driver.KindMemfd
)

// Access rights.
const (
	LocalWrite   = driver.LocalWrite
	RemoteWrite  = driver.RemoteWrite
	RemoteRead   = driver.RemoteRead
	RemoteAtomic = driver.RemoteAtomic
	AllAccess    = driver.AllAccess
)

// Queue pair states.
const (
	StateReset = driver.StateReset
	StateInit  = driver.StateInit
	StateRTR   = driver.StateRTR
	StateRTS   = driver.StateRTS
	StateSQD   = driver.StateSQD
	StateErr   = driver.StateErr
)

// Operations.
const (
	OpWrite       = driver.OpWrite
	OpWriteImm    = driver.OpWriteImm
	OpRead        = driver.OpRead
	OpSend        = driver.OpSend
	OpFetchAdd    = driver.OpFetchAdd
	OpCmpSwap     = driver.OpCmpSwap
	OpAtomic      = driver.OpAtomic
	OpAccumulate  = driver.OpAccumulate
	OpWriteBlocks = driver.OpWriteBlocks
	OpReadBlocks  = driver.OpReadBlocks
	OpRecv        = driver.OpRecv
	OpRecvImm     = driver.OpRecvImm
)

// Operations of an OpAtomic request.
const (
	AtomicAdd     = driver.AtomicAdd
	AtomicAnd     = driver.AtomicAnd
	AtomicOr      = driver.AtomicOr
	AtomicXor     = driver.AtomicXor
	AtomicSwap    = driver.AtomicSwap
	AtomicCmpSwap = driver.AtomicCmpSwap
	AtomicLoad    = driver.AtomicLoad
	AtomicStore   = driver.AtomicStore

	AtomicAddFloat = driver.AtomicAddFloat
	AtomicMinFloat = driver.AtomicMinFloat
	AtomicMaxFloat = driver.AtomicMaxFloat
	AtomicMinInt   = driver.AtomicMinInt
	AtomicMaxInt   = driver.AtomicMaxInt
	AtomicMinUint  = driver.AtomicMinUint
	AtomicMaxUint  = driver.AtomicMaxUint

	AtomicMul        = driver.AtomicMul
	AtomicMulFloat   = driver.AtomicMulFloat
	AtomicAddComplex = driver.AtomicAddComplex
	AtomicMulComplex = driver.AtomicMulComplex
)

// Work request flags.
const (
	Signaled  = driver.Signaled
	Inline    = driver.Inline
	Fence     = driver.Fence
	Solicited = driver.Solicited
	Announced = driver.Announced
	Fetch     = driver.Fetch
)

// Completion statuses.
const (
	Success          = driver.Success
	LocalLength      = driver.LocalLength
	LocalProtection  = driver.LocalProtection
	Flushed          = driver.Flushed
	RemoteInvalid    = driver.RemoteInvalid
	RemoteAccess     = driver.RemoteAccess
	RemoteOperation  = driver.RemoteOperation
	RetryExceeded    = driver.RetryExceeded
	ReceiverNotReady = driver.ReceiverNotReady
	Canceled         = driver.Canceled
	GeneralError     = driver.GeneralError
)

// Asynchronous events.
const (
	EventQPFatal     = driver.EventQPFatal
	EventDeviceFatal = driver.EventDeviceFatal
)
