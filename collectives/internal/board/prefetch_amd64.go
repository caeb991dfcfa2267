package board

// prefetchWrite has the core fetch a line for writing, and does not wait. Any core
// may have and write the line: only time depends on it.
//
//go:noescape
func prefetchWrite(l *line)
