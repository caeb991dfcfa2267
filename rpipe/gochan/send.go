package gochan

import (
	"context"
	"errors"
	"sync"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
	"github.com/gopgas/gopgas/runtime"
)

// A Sender sends values over a channel between two ranks: a pipe whose blocks carry
// values.
//
//	Send -> a block -> Recv                             while the pipe takes one
//	Send -> gathered values -> a block -> Recv          else
//
// While the receiver keeps up, each value leaves at once in a block of its own. While
// the pipe is full, values gather. A goroutine waits for room and sends all gathered
// values together: the further the receiver is behind, the less a value costs. No value
// waits for a later one. Any goroutine may call all methods; calls that send take turns.
type Sender[T any] struct {
	mu       sync.Mutex // the pipe is the flushing goroutine's if there is one, else the mutex's holder's
	flushing bool
	closed   bool
	lost     error // the error that lost gathered values
	gathered []T   // as many as its capacity leave together
	leaving  []T   // of the flushing goroutine
	one      [1]T

	w       *rpipe.Writer[T]
	end     *pipe.Writer // of w
	own     *pipe.End    // of end, whose cache lines the flushing goroutine changes
	turn    turn.Turn    // of the goroutine that sends
	room    chan struct{}
	life    context.Context // of the goroutine that flushes
	endLife context.CancelCauseFunc
}

// togetherAtMost bounds the bytes of values that leave together.
const togetherAtMost = 4096

// OpenSender opens this rank's end of a channel to another rank of t. That rank opens
// the receiver's end by OpenReceiver with the same options. OpenSender does not wait
// for the receiver; the first Send does. Kind: local.
func OpenSender[T any](ctx context.Context, t *runtime.Team, receiver int, opts ...Option) (*Sender[T], error) {
	w, err := rpipe.OpenWriter[T](ctx, t, receiver, pipeOptions(opts)...)
	if err != nil {
		return nil, err
	}
	// Blocks are so small that the pipe's width runs out before its memory does.
	end := (*pipe.TypedWriter[T])(w).End()
	spec := &end.Spec
	batch := max(min(togetherAtMost, spec.Heap/(2*(spec.Width+1))&^63)/spec.Size, 1)
	s := &Sender[T]{w: w, end: end, own: end.End, turn: turn.New(), room: make(chan struct{}, 1),
		gathered: make([]T, 0, batch), leaving: make([]T, 0, batch)}
	s.life, s.endLife = context.WithCancelCause(context.Background())
	return s, nil
}

// Send sends a value. It waits until the receiver has opened its end, and until the
// pipe or the gathered values have room. When ctx ends first, Send does not send the
// value. Gathered values leave as soon as the pipe takes a block. Kind: one-sided.
func (s *Sender[T]) Send(ctx context.Context, v T) error {
	ctx = wait.Context(ctx)
	if err := s.turn.Take(ctx); err != nil {
		return s.own.Fail("Send", err)
	}
	defer s.turn.Give()
	err := s.try(v)
	for errors.Is(err, rpipe.ErrWouldBlock) {
		if err = s.await(ctx); err == nil {
			err = s.try(v)
		}
	}
	return s.own.Fail("Send", err)
}

// TrySend sends a value as Send does, without waiting for the receiver. ErrWouldBlock: no
// more fits, the receiver has not opened its end, or another goroutine is sending. To
// connect, it waits for the receiver's rank for a second at most. Kind: one-sided.
func (s *Sender[T]) TrySend(v T) error {
	if !s.turn.Try() {
		return rpipe.ErrWouldBlock
	}
	defer s.turn.Give()
	return s.own.Fail("TrySend", s.try(v))
}

// try sends or gathers a value. Called in the turn, as await.
func (s *Sender[T]) try(v T) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return pipe.ErrSelfClosed
	case s.lost != nil:
		return s.lost
	case s.flushing && len(s.gathered) == cap(s.gathered):
		return rpipe.ErrWouldBlock
	case !s.flushing:
		s.one[0] = v
		err := s.w.TrySend(s.one[:])
		if !errors.Is(err, rpipe.ErrWouldBlock) || !s.end.Up {
			return err
		}
		s.flushing = true
		go s.flush()
	}
	s.gathered = append(s.gathered, v)
	return nil
}

// await waits until the receiver has opened its end, and else until the flushing
// goroutine has taken the gathered values.
func (s *Sender[T]) await(ctx context.Context) error {
	if !s.end.Up {
		return s.w.Connect(ctx)
	}
	select {
	case <-s.room:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// flush sends what gathers, until nothing is left.
func (s *Sender[T]) flush() {
	for s.next() {
		if err := s.w.Send(s.life, s.leaving); err != nil {
			s.mu.Lock()
			s.lost, s.gathered = err, s.gathered[:0]
			s.mu.Unlock()
		}
	}
}

// next takes the gathered values. Without any, it is false and frees the pipe.
func (s *Sender[T]) next() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushing = len(s.gathered) > 0
	s.gathered, s.leaving = s.leaving[:0], s.gathered
	select {
	case s.room <- struct{}{}:
	default:
	}
	return s.flushing
}

// Close sends the gathered values and tells the receiver that no value follows. It waits
// until the receiver has received all values, as Writer's Close does. It returns an
// error if the receiver has not. The second call does nothing. Kind: one-sided.
func (s *Sender[T]) Close(ctx context.Context) error {
	ctx = wait.Context(ctx)
	if err := s.turn.Take(ctx); err != nil {
		return s.own.Fail("Close", err)
	}
	defer s.turn.Give()
	if s.closed {
		return nil
	}
	patience := ctx
	for s.busy() {
		if err := s.await(patience); err != nil {
			s.endLife(err)
			patience = context.WithoutCancel(ctx) // the goroutine ends now
		}
	}
	return s.own.Fail("Close", errors.Join(s.lost, s.w.Close(ctx)))
}

// busy ends calls that send, and reports whether gathered values are still leaving.
func (s *Sender[T]) busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.flushing
}
