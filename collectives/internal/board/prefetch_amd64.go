package board

// prefetchWrite has the core fetch a line to write it, and does not wait. It may be
// any core's, and written there: nothing but time depends on it.
//
//go:noescape
func prefetchWrite(l *line)
