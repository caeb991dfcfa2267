package fan

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

func (f *fanOut) flush(ctx context.Context) error {
	var errs []error
	for _, m := range f.arms {
		if m.lost == nil && m.w.Up {
			errs = append(errs, m.w.End.Fail("Flush", m.w.Flushed(ctx)))
		}
	}
	return errors.Join(errs...)
}

func (f *fanOut) close(ctx context.Context) error {
	if f.id.Closed.Swap(true) {
		return nil
	}
	ctx, cancel := pipe.WithMoment(ctx)
	defer cancel()
	var errs []error
	for _, m := range f.arms {
		err := m.w.Close(ctx)
		if m.lost == nil { // else Write has told
			errs = append(errs, m.w.End.Fail("Close", err))
		}
	}
	f.stage.Drop()
	return errors.Join(errs...)
}

// fail wraps an error that is of no reader.
func (f *fanOut) fail(op string, err error) error { return f.id.Fail(op, err) }
