package atomics

// prefetchWrite is PREFETCHW; processors that have none take it for a NOP.
//
//go:noescape
func prefetchWrite(p *byte)
