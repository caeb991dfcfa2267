package atomics

import "golang.org/x/sys/cpu"

var hasPairs = cpu.X86.HasCX16

// compareSwapPair stores next in *p if *p equals old, and returns the earlier value. p is a
// multiple of 16.
func compareSwapPair(p *pair, old, next pair) (seen pair) {
	seen[0], seen[1] = cmpxchg16b(p, old[0], old[1], next[0], next[1])
	return seen
}

//go:noescape
func cmpxchg16b(p *pair, old0, old1, next0, next1 uint64) (seen0, seen1 uint64)
