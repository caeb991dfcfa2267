package rmalloc

import "errors"

// Sentinels, for errors.Is. Calls return ErrFull itself, since waiting for memory
// is no failure; they wrap the rest with their arguments.
var (
	// ErrFull: the heap has no room just now; memory that the reader frees may
	// make some.
	ErrFull = errors.New("rmalloc: heap full: wait until the peer frees blocks, or open with a larger heap or more blocks")
	// ErrTooLarge: the block is larger than the whole heap.
	ErrTooLarge = errors.New("rmalloc: larger than the heap")
	// ErrStale: the address names no block that this end still owns: this end
	// freed or sent it before, or it belongs to another heap.
	ErrStale = errors.New("rmalloc: stale address: the block was freed or sent, or is of another heap")
	// ErrCorrupt: the peer wrote an impossible word, so its words cannot be
	// relied on; give up the pipe.
	ErrCorrupt = errors.New("rmalloc: a word of the peer does not fit this heap")
	// ErrInvalid: an argument is out of its bounds.
	ErrInvalid = errors.New("rmalloc: invalid argument")
	// ErrPolicy: a Policy returned no hole of sufficient size.
	ErrPolicy = errors.New("rmalloc: the policy chose no hole that fits")
)
