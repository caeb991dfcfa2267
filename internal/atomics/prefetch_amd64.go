package atomics

// prefetchWrite is PREFETCHW; processors without it execute a NOP.
//
//go:noescape
func prefetchWrite(p *byte)
