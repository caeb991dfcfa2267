//go:build !amd64 || race

package atomics

import "sync/atomic"

// Fence orders all earlier loads and stores of this thread before all later ones, plain
// ones too. Go compiles the addition to a release, and the load to an acquire that comes
// behind earlier releases. So whatever precedes the addition precedes the load, and the load
// precedes the rest. The addition alone does not suffice: on arm64 without LSE it is a loop,
// and later loads may overtake its store. The word is the call's own: no cache line is shared.
func Fence() {
	var word uint32
	atomic.AddUint32(&word, 1)
	atomic.LoadUint32(&word)
}

// AcquireRelease is Fence but for an earlier store and a later load.
func AcquireRelease() { Fence() }
