package rpipe

import "github.com/gopgas/gopgas/rpipe/internal/pipe"

// Errors of a call; match them with errors.Is. Errors that concern the peer are
// package runtime's.
var (
	// ErrStale: the block was freed or written before.
	ErrStale = pipe.ErrStale
	// ErrForeign: the block is of another pipe, or none.
	ErrForeign = pipe.ErrForeign
	// ErrTooLarge: a block that the pipe's heap cannot hold, however empty.
	ErrTooLarge = pipe.ErrTooLarge
	// ErrWouldBlock: a Try call would have to wait. No OpError wraps it.
	ErrWouldBlock = pipe.ErrWouldBlock
	// ErrCorrupt: this end's memory holds words that no correct peer writes. The pipe
	// is of no more use: close it.
	ErrCorrupt = pipe.ErrCorrupt
	// ErrClosed: this end or its peer has closed the pipe. (A job that is
	// closed is runtime.ErrClosed.)
	ErrClosed = pipe.ErrClosed
	// ErrType: elements that hold pointers or have no size.
	ErrType = pipe.ErrType
)

// An OpError says which operation on which pipe failed. Op is the call, such as "Write", and Pipe
// the name and incarnation, such as "halo#0". Rank is the rank that called, Peer that at the other
// end (-1 for many pipes together). Err is the cause. Ranks are those of the pipe's team.
type OpError = pipe.OpError
