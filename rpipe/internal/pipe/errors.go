package pipe

import (
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// Errors of a call; match them with errors.Is. Errors that concern the peer are
// package runtime's.
var (
	// ErrStale: the block was freed or written before.
	ErrStale = rmalloc.ErrStale
	// ErrForeign: the block is of another pipe, or none.
	ErrForeign = errors.New("block of another pipe")
	// ErrTooLarge: a block that the pipe's heap cannot hold, however empty.
	ErrTooLarge = rmalloc.ErrTooLarge
	// ErrWouldBlock: a Try call would have to wait. No OpError wraps it.
	ErrWouldBlock = errors.New("the call would have to wait")
	// ErrCorrupt: this end's memory holds words that no correct peer writes. The pipe
	// is of no more use: close it.
	ErrCorrupt = rmalloc.ErrCorrupt
	// ErrClosed: this end or its peer has closed the pipe. (A job that is
	// closed is runtime.ErrClosed.)
	ErrClosed = errors.New("pipe is closed")
	// ErrType: elements that hold pointers or have no size.
	ErrType = element.ErrType
)

var (
	// ErrSelfClosed: this end was closed.
	ErrSelfClosed = fmt.Errorf("%w at this end; open another one", ErrClosed)
	errWritesOver = fmt.Errorf("%w for writing by CloseWrite; open another pipe", ErrClosed)
	// ErrReaderGone: the reader was closed.
	ErrReaderGone = fmt.Errorf("%w by the reader; close this end, and open another pipe", ErrClosed)
	errNoCard     = fmt.Errorf("%w: the other end's memory is too small to be a pipe's", ErrCorrupt)
	// ErrPoolClosed: the window pool of the pipe was closed.
	ErrPoolClosed = fmt.Errorf("%w: the pipe's pool; open another one", ErrClosed)
	// ErrNoSummary: the reader has no summary where its card says.
	ErrNoSummary    = fmt.Errorf("%w: the reader's aggregate is not what its card says", ErrCorrupt)
	errNotAPipe     = fmt.Errorf("%w: the other end is not a pipe of this version", ErrCorrupt)
	errCredit       = fmt.Errorf("%w: more blocks were read than written", ErrCorrupt)
	errBadFlag      = fmt.Errorf("%w: notification flag", ErrCorrupt)
	errBadTag       = fmt.Errorf("%w: tag of freed memory", ErrCorrupt)
	errWriterGaveUp = fmt.Errorf("%w at the writer's end, which has given up: blocks may be missing; close this end, and open another pipe", ErrCorrupt)
	errPartElement  = fmt.Errorf("%w: a block ends within an element", ErrCorrupt)
)

// Advise adds advice to the error of a block that never fits.
func Advise(err error) error {
	if err != nil && errors.Is(err, ErrTooLarge) {
		return fmt.Errorf("%w; raise WithHeap", err)
	}
	return err
}

// An OpError says which operation on which pipe failed.
type OpError struct {
	Op   string // such as "Write"
	Pipe string // its name and incarnation, such as "halo#0"
	Rank int    // that called, in the pipe's team
	Peer int    // the peer, in the pipe's team; -1 if it is of many pipes together
	Err  error
}

// Error returns the operation, the pipe, the ranks and the cause. Kind: local.
func (e *OpError) Error() string {
	if e.Peer < 0 {
		return fmt.Sprintf("%s by rank %d on pipes %s: %v", e.Op, e.Rank, e.Pipe, e.Err)
	}
	return fmt.Sprintf("%s by rank %d on pipe %s with rank %d: %v", e.Op, e.Rank, e.Pipe, e.Peer, e.Err)
}

// Unwrap returns the cause. Kind: local.
func (e *OpError) Unwrap() error { return e.Err }
