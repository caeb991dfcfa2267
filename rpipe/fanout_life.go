package rpipe

import (
	"context"
	"errors"
)

func (f *fanOut) flush(ctx context.Context) error {
	var errs []error
	for _, m := range f.arms {
		if m.lost == nil && m.w.up {
			errs = append(errs, m.w.pipe.fail("Flush", m.w.flushed(ctx)))
		}
	}
	return errors.Join(errs...)
}

func (f *fanOut) close(ctx context.Context) error {
	if f.id.closed.Swap(true) {
		return nil
	}
	ctx, cancel := withMoment(ctx)
	defer cancel()
	var errs []error
	for _, m := range f.arms {
		err := m.w.close(ctx)
		if m.lost == nil { // else Write has told
			errs = append(errs, m.w.pipe.fail("Close", err))
		}
	}
	f.stage.drop()
	return errors.Join(errs...)
}

// fail wraps an error that is of no reader.
func (f *fanOut) fail(op string, err error) error { return f.id.fail(op, err) }
