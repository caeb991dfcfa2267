//go:build !race

package atomics

import "sync/atomic"

// Fence orders all earlier loads and stores of this thread before all later ones, plain
// ones too. Every locked instruction does so here; only a store and a later load need it. The
// word is the call's own: no cache line is shared.
func Fence() {
	var word uint32
	atomic.AddUint32(&word, 1)
}

// AcquireRelease is Fence but for an earlier store and a later load. Here the processor
// orders all others by itself.
func AcquireRelease() {}
