package rpipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/runtime"
)

// Shrink leaves the first n elements of a block that is not written yet, and gives
// back the memory behind them: for blocks that were allocated before their length
// was known. ErrStale: it was written or freed before. Kind: local.
func (w *Writer[T]) Shrink(b Block[T], n int) (Block[T], error) {
	a, err := b.own(w.end.pipe)
	if err == nil && uint(n) > uint(b.Len()) {
		err = fmt.Errorf("%d elements of a block of %d: %w", n, b.Len(), runtime.ErrRange)
	}
	if err == nil {
		err = w.end.heap.Shrink(a, n*element.Size[T]())
	}
	if err != nil {
		return b, w.end.fail("Shrink", err)
	}
	b.n = n
	return b, nil
}

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
