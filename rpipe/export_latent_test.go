package rpipe

import (
	"sync/atomic"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A latent link is of a device that shows what has arrived when somebody makes
// progress, and not before.
type latent struct {
	pipe.Link
	shown atomic.Bool
}

func (l *latent) Flag(i int) uint64 {
	if !l.shown.Load() {
		return 0
	}
	return l.Link.Flag(i)
}

func (l *latent) Progress() bool {
	l.shown.Store(true)
	return true
}

// Hide has a fan-in's pipe, of which nothing has arrived, show what arrives only
// behind progress.
func (f *FanIn[T]) Hide(pipe int) {
	p := f.in.ends[pipe].End
	p.Link = &latent{Link: p.Link}
}
