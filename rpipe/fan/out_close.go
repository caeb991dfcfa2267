package fan

import (
	"context"
	"errors"
)

// flush waits until all readers' memory has what was written. A reader that was lost is left out.
func (f *fanOut) flush(ctx context.Context) error {
	var errs []error
	for _, p := range f.pipes {
		if p.lost == nil && p.Up {
			errs = append(errs, p.Fail("Flush", p.Flushed(ctx)))
		}
	}
	return errors.Join(errs...)
}

// close closes all pipes, and returns their errors together with those that no call has reported yet.
func (f *fanOut) close(ctx context.Context) error {
	if f.id.Closed.Swap(true) {
		return nil
	}
	errs := []error{f.report()}
	for _, p := range f.pipes {
		err := p.Close(ctx)
		if p.lost == nil { // else a report has its error
			errs = append(errs, p.Fail("Close", err))
		}
	}
	f.stage.drop()
	return errors.Join(errs...)
}
