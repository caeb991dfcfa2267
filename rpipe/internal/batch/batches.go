package batch

import (
	"context"
	"errors"
	"time"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
)

// Batches are this rank's batches for all ranks of a team, with their clock.
type Batches[T any] struct {
	To    []Batch[T] // by rank
	Clock pipe.Clock
	Now   context.Context // of calls that do not wait, as pipe.NoWait returns it
}

// Init sets the pipes and the least number of elements of a block. It also sets the longest time
// that an element waits for its block to leave.
func (s *Batches[T]) Init(writers []*rpipe.Writer[T], least int, bound time.Duration) {
	s.Now = pipe.NoWait()
	s.To = make([]Batch[T], len(writers))
	for to, w := range writers {
		b := &s.To[to]
		b.Writer, b.least, b.turn = w, max(1, least), turn.New()
	}
	s.Clock.Start(bound, s.late)
}

// late has each batch send its block. It reports whether one could not.
func (s *Batches[T]) late() (again bool) {
	for i := range s.To {
		again = s.To[i].late(s.Now) || again
	}
	return again
}

// Sent returns the number of blocks that left for a cause.
func (s *Batches[T]) Sent(why Cause) (n uint64) {
	for i := range s.To {
		n += s.To[i].sent[why].Load()
	}
	return n
}

// Flush sends the elements of all batches. Under Now a batch whose reader leaves no room
// keeps its elements. Flush then returns ErrWouldBlock, unless another batch failed.
func (s *Batches[T]) Flush(ctx context.Context) error {
	return s.sendAll(ctx, func(b *Batch[T]) error { return b.Send(ctx, ByHand) })
}

// Mark sends the elements of all batches, and mark n behind them: an empty block. It
// skips a batch whose mark n has left, so a call goes on where an earlier one has stopped.
// Under Now it returns ErrWouldBlock as Flush does.
func (s *Batches[T]) Mark(ctx context.Context, n uint64) error {
	return s.sendAll(ctx, func(b *Batch[T]) error { return b.mark(ctx, n) })
}

// sendAll calls send with each batch. It returns ErrWouldBlock if send does so for a batch
// and no other error for another.
func (s *Batches[T]) sendAll(ctx context.Context, send func(b *Batch[T]) error) error {
	blocked := false
	err := s.each(ctx, func(b *Batch[T]) error {
		err := send(b)
		if errors.Is(err, rpipe.ErrWouldBlock) {
			blocked = true
			return nil
		}
		return err
	})
	if err == nil && blocked {
		return rpipe.ErrWouldBlock
	}
	return err
}

// Finish sends the elements of all batches, and tells all ranks that no block follows.
func (s *Batches[T]) Finish(ctx context.Context) error {
	return s.each(ctx, func(b *Batch[T]) error { return b.finish(ctx) })
}

// Close stops the clock and closes the pipes. It waits up to closeWait for goroutines that
// hold a batch: the caller has told them to leave. The job's end frees a pipe that such a
// goroutine still uses.
func (s *Batches[T]) Close(ctx context.Context) error {
	s.Clock.Stop()
	leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeWait)
	defer cancel()
	return s.each(leaving, func(b *Batch[T]) error { return b.Writer.Close(ctx) })
}

// closeWait bounds how long Close waits for goroutines that leave.
const closeWait = time.Second

// each calls do with each batch, which it holds meanwhile, and joins the errors.
func (s *Batches[T]) each(ctx context.Context, do func(b *Batch[T]) error) error {
	var errs []error
	for i := range s.To {
		b := &s.To[i]
		err := b.Enter(ctx)
		if err == nil {
			err = do(b)
			b.Leave()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
