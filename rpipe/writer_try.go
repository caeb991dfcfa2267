package rpipe

import (
	"context"
	"errors"
)

// hasWidth tells that a block can be written without a wait for the reader.
func (w *writerEnd) hasWidth() (bool, error) {
	if err := w.takeCredit(); err != nil {
		return false, err
	}
	return w.inFlight() < w.spec.width, nil
}

// comesUp is ready that does not wait for a reader to open, nor for long for its rank
// to say whether it has: it is false then.
func (w *writerEnd) comesUp(noWait context.Context) (bool, error) {
	if !w.up && !w.joined.Load() && w.usable() == nil {
		brief, cancel := context.WithTimeoutCause(context.Background(), lastMoment, errNoRoom)
		defer cancel()
		_, deserted, err := w.join(brief, false)
		if errors.Is(err, errNoRoom) || err == nil && !w.joined.Load() {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		w.deserted = deserted
	}
	err := w.ready(noWait)
	return err == nil, err
}
