// Package progress tells how far a program is, when it takes long.
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

// A Line tells how far something is. It is of one goroutine.
type Line struct {
	out     io.Writer
	program string
	next    time.Time
	now     func() time.Time
}

// New returns a line of a program, which tells nothing if speaks is false: one
// rank of several has something to say.
func New(out io.Writer, program string, speaks bool) *Line {
	if !speaks {
		out = nil
	}
	return &Line{out: out, program: program, next: time.Now().Add(after), now: time.Now}
}

// Tell says how far it is, unless it is too early to.
func (l *Line) Tell(format string, args ...any) {
	if l.out == nil {
		return
	}
	if now := l.now(); now.After(l.next) {
		l.next = now.Add(every)
		fmt.Fprintf(l.out, l.program+": "+format+"\n", args...)
	}
}
