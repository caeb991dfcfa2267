package rpipe

import (
	"context"
	"errors"
)

// fail wraps an error that is of no pipe.
func (f *fanIn) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Pipe: f.ends[0].options.name, Rank: f.team.Rank, Peer: -1, Err: err}
}

func (f *fanIn) stats() FanInStats {
	s := FanInStats{Open: int(f.open.Load()), Looks: f.looks.Load()}
	for _, r := range f.ends {
		one := r.stats()
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
	f.ends[0].ring() // a Read may wait
	ctx, cancel := withMoment(ctx)
	defer cancel()
	var errs []error
	for _, r := range f.ends {
		errs = append(errs, r.pipe.fail("Close", r.close(ctx)))
	}
	f.calling.Lock() // it has left
	defer f.calling.Unlock()
	f.tally.drop(false)
	return errors.Join(errs...)
}
