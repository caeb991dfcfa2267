package rmalloc

import "errors"

// Sentinels, for errors.Is. ErrFull comes bare, since waiting for memory is no
// failure; the others are wrapped with what was asked.
var (
	// ErrFull: there is no room just now; memory that the reader frees may make
	// some.
	ErrFull = errors.New("rmalloc: heap full: wait until the other end frees blocks, or open with a larger heap or more blocks")
	// ErrTooLarge: no amount of freeing makes room for so much.
	ErrTooLarge = errors.New("rmalloc: larger than the heap")
	// ErrStale: the address is of no block that this end still owns: it was
	// freed or sent before, or belongs to another heap.
	ErrStale = errors.New("rmalloc: stale address: the block was freed or sent, or is of another heap")
	// ErrCorrupt: what the other end wrote cannot be, so nothing it says can be
	// relied on; give up the pipe.
	ErrCorrupt = errors.New("rmalloc: the other end's word does not fit this heap")
	// ErrInvalid: an argument is out of its bounds.
	ErrInvalid = errors.New("rmalloc: invalid argument")
	// ErrPolicy: a Policy chose what is no hole of sufficient size.
	ErrPolicy = errors.New("rmalloc: the policy chose no hole that fits")
)
