package atomics

// prefetch is PREFETCHT0. Prefetch calls it.
//
//go:noescape
func prefetch(p *byte)

// prefetchWrite is PREFETCHW; processors without it execute a NOP. PrefetchWrite calls it.
//
//go:noescape
func prefetchWrite(p *byte)
