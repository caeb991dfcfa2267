package rpipe

import "sync/atomic"

// A latent link is of a device that shows what has arrived when somebody makes
// progress, and not before.
type latent struct {
	link
	shown atomic.Bool
}

func (l *latent) flag(i int) uint64 {
	if !l.shown.Load() {
		return 0
	}
	return l.link.flag(i)
}

func (l *latent) progress() bool {
	l.shown.Store(true)
	return true
}

// Hide has a fan-in's pipe, of which nothing has arrived, show what arrives only
// behind progress.
func (f *FanIn[T]) Hide(pipe int) {
	p := f.in.ends[pipe].pipe
	p.link = &latent{link: p.link}
}
