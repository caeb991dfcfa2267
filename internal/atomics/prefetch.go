package atomics

// PrefetchWrite asks the core to own the first cache line of mem soon, which is
// about to be written: otherwise the first store waits until the core that read it
// last has given it up. It is a hint, and does nothing where mem is empty.
func PrefetchWrite(mem []byte) {
	if len(mem) > 0 {
		prefetchWrite(&mem[0])
	}
}
