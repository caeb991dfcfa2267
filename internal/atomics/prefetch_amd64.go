package atomics

//go:noescape
func prefetch(p *byte)

// prefetchWrite is PREFETCHW; processors without it execute a NOP.
//
//go:noescape
func prefetchWrite(p *byte)
