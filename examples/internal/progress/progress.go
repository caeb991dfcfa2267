// Package progress prints the progress of a program that takes long.
package progress

import (
	"fmt"
	"io"
	"time"
)

const (
	after = 2 * time.Second
	every = time.Second
)

// A Line prints the progress of one task. One goroutine uses it.
type Line struct {
	out     io.Writer
	program string
	next    time.Time
	now     func() time.Time
}

// New returns a line of a program. If speaks is false the line prints nothing: of
// several ranks, one prints.
func New(out io.Writer, program string, speaks bool) *Line {
	if !speaks {
		out = nil
	}
	return &Line{out: out, program: program, next: time.Now().Add(after), now: time.Now}
}

// Tell prints the progress, unless it is too early.
func (l *Line) Tell(format string, args ...any) {
	if l.out == nil {
		return
	}
	if now := l.now(); now.After(l.next) {
		l.next = now.Add(every)
		fmt.Fprintf(l.out, l.program+": "+format+"\n", args...)
	}
}
