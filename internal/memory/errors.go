package memory

import "errors"

// Errors of this package. Match them with errors.Is; argument errors wrap
// driver.ErrInvalid, calls after Close driver.ErrClosed.
var (
	// ErrNoMemory: the host or the memory cgroup has no room for the pages.
	ErrNoMemory = errors.New("not enough memory")
	// ErrUnsealed: the descriptor is no memfd, or its owner could resize it.
	ErrUnsealed = errors.New("not a sealed memfd")
	// ErrTooSmall: the memfd is smaller than its owner said.
	ErrTooSmall = errors.New("memfd too small")
	// ErrNoDescriptor: a process ended, or its connection, and it had sent no descriptor.
	ErrNoDescriptor = errors.New("no descriptor came")
	// ErrUnmappable: CPUs cannot map this memory.
	ErrUnmappable = errors.New("CPUs cannot map this memory")
)
