package atomics

// Prefetch asks the core to load the first cache line of mem soon. It is a hint, and does
// nothing if mem is empty.
func Prefetch(mem []byte) {
	if len(mem) > 0 {
		prefetch(&mem[0])
	}
}

// PrefetchWrite asks the core to own the first cache line of mem soon, for a
// write. Without it the first store waits until the core that read the line last
// has given it up. It is a hint, and does nothing if mem is empty.
func PrefetchWrite(mem []byte) {
	if len(mem) > 0 {
		prefetchWrite(&mem[0])
	}
}
