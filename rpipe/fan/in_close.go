package fan

import (
	"context"
	"errors"
)

// stats adds the counts of all pipes.
func (f *fanIn) stats() InStats {
	s := InStats{Open: int(f.open.Load()), Looks: f.looks.Load()}
	for i := range f.pipes {
		one := f.pipes[i].Stats()
		s.Read += one.Read
		s.Held += one.Held
		s.Announcements += one.Announcements
	}
	return s
}

// close closes all pipes and joins their errors. A Read that waits ends, and close returns behind it.
func (f *fanIn) close(ctx context.Context) error {
	if f.closed.Swap(true) {
		return nil
	}
	f.pipes[0].Ring() // wakes a Read that waits
	var errs []error
	for i := range f.pipes {
		p := &f.pipes[i]
		errs = append(errs, p.Fail("Close", p.Close(ctx)))
	}
	f.reading.Lock() // the Read has returned
	defer f.reading.Unlock()
	f.summary.Drop(false)
	return errors.Join(errs...)
}
