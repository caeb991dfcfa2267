package fan

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// fail wraps an error that is of no pipe.
func (f *fanIn) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &rpipe.OpError{Op: op, Pipe: f.ends[0].Options.Name, Rank: f.team.Rank, Peer: -1, Err: err}
}

func (f *fanIn) stats() InStats {
	s := InStats{Open: int(f.open.Load()), Looks: f.looks.Load()}
	for _, r := range f.ends {
		one := r.Stats()
		s.Read += one.Read
		s.Held += one.Held
		s.Announcements += one.Announcements
	}
	return s
}

func (f *fanIn) close(ctx context.Context) error {
	if f.closed.Swap(true) {
		return nil
	}
	f.ends[0].Ring() // a Read may wait
	ctx, cancel := pipe.WithMoment(ctx)
	defer cancel()
	var errs []error
	for _, r := range f.ends {
		errs = append(errs, r.End.Fail("Close", r.Close(ctx)))
	}
	f.calling.Lock() // it has left
	defer f.calling.Unlock()
	f.tally.Drop(false)
	return errors.Join(errs...)
}
