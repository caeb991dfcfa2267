package rpipe

import (
	"context"
	"errors"
	"time"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// A Sender is the sending end of a channel of values between two ranks: a pipe
// whose blocks carry values.
//
//	Send -> gathered values -> a block, as soon as the pipe takes one -> Recv
//
// While the receiver keeps up, each value leaves at once in a block of its own.
// While it does not, and the pipe is full, values gather until it takes a block
// again, and leave together: the further the receiver is behind, the less a value
// costs. No value waits for another one to come. All methods may be called by any
// goroutine; those that send take turns.
type Sender[T any] struct {
	turn   turn
	w      *Writer[T]
	values []T // gathered; as many as its capacity leave together
	noWait context.Context
	timer  *time.Timer // runs while something is gathered
	stuck  bool        // the timer tries next
	lost   error       // what became of values that were gathered
	closed bool
}

// togetherAtMost is how many bytes of values leave together.
const togetherAtMost = 4096

// OpenSender opens this rank's end of a channel to another rank of t, which opens
// the other one by OpenReceiver with the same options. It does not wait for that;
// the first Send does. WithWidth bounds how many blocks are under way, and so how
// far the sender gets ahead. Synchronization is deferred. Kind: local.
func OpenSender[T any](ctx context.Context, t *runtime.Team, receiver int, opts ...Option) (*Sender[T], error) {
	w, err := OpenWriter[T](ctx, t, receiver, channel(opts)...)
	if err != nil {
		return nil, err
	}
	// Blocks are so small that the pipe's width runs out before its memory does.
	spec := w.end.spec
	batch := min(togetherAtMost, spec.heap/(2*(spec.width+1))&^(rmalloc.Granule-1)) / element.Size[T]()
	s := &Sender[T]{turn: newTurn(), w: w, values: make([]T, 0, max(batch, 1)), noWait: noWait()}
	s.timer = time.AfterFunc(time.Hour, s.tick)
	s.timer.Stop()
	return s, nil
}

// channel returns the options of a channel's pipe.
func channel(opts []Option) []Option {
	return append(append([]Option{WithName("channel")}, opts...), WithSync(Deferred))
}

// Send sends a value. It waits for the receiver to open its end, and while so much
// is under way and gathered that no more fits; when ctx ends first, the value is
// not sent. Values that are gathered leave within a millisecond after the pipe
// takes a block. Kind: one-sided.
func (s *Sender[T]) Send(ctx context.Context, v T) error {
	ctx = wait.Context(ctx)
	if err := s.turn.take(ctx); err != nil {
		return s.failed("Send", err)
	}
	defer s.turn.give()
	if err := s.ready(); err != nil {
		return s.failed("Send", err)
	}
	if !s.w.end.up {
		if err := s.w.end.ready(ctx); err != nil {
			return s.failed("Send", err)
		}
	}
	if len(s.values) == cap(s.values) {
		if err := s.leave(ctx); err != nil {
			return err
		}
	}
	return s.gather(v)
}

// TrySend is Send that waits for nothing: ok tells whether the value is sent.
// While the receiver has not opened its end it is not. Kind: one-sided.
func (s *Sender[T]) TrySend(v T) (ok bool, err error) {
	if !s.turn.try() {
		return false, nil
	}
	defer s.turn.give()
	if err := s.ready(); err != nil {
		return false, s.failed("TrySend", err)
	}
	if err := s.w.end.readyNow(); err != nil {
		return false, s.failed("TrySend", unlessLater(err))
	}
	if len(s.values) == cap(s.values) {
		if ok, err := s.w.end.hasWidth(); !ok || err != nil {
			return false, s.failed("TrySend", err)
		}
		if err := s.leave(s.noWait); err != nil {
			return false, unlessLater(err)
		}
	}
	return true, s.gather(v)
}

// ready returns why nothing can be sent. Called in one's turn, as the next ones.
func (s *Sender[T]) ready() error {
	if s.closed {
		return errSelfClosed
	}
	return s.lost
}

// gather takes a value in, and sends what is gathered if the pipe takes it now.
func (s *Sender[T]) gather(v T) error {
	s.values = append(s.values, v)
	if ok, err := s.w.end.hasWidth(); err != nil {
		s.lost = s.failed("Send", err)
		return s.lost
	} else if !ok || s.stuck {
		s.later()
		return nil
	}
	if err := unlessLater(s.leave(s.noWait)); err != nil {
		s.values = s.values[:len(s.values)-1]
		return err
	}
	if s.stuck = len(s.values) > 0; s.stuck {
		s.later()
	}
	return nil
}

// leave sends what is gathered in one block.
func (s *Sender[T]) leave(ctx context.Context) error {
	if len(s.values) == 0 {
		return nil
	}
	if err := s.w.Send(ctx, s.values); err != nil {
		return err
	}
	s.values, s.stuck = s.values[:0], false
	return nil
}

// later has the timer look after what is gathered.
func (s *Sender[T]) later() { s.timer.Reset(beat) }

// tick sends what is gathered, if nobody else does: who has the turn will.
func (s *Sender[T]) tick() {
	if !s.turn.try() {
		s.later()
		return
	}
	defer s.turn.give()
	if len(s.values) == 0 || s.lost != nil || s.closed {
		return
	}
	s.stuck = false
	s.lost = s.failed("Send", s.tryLeave())
	if len(s.values) > 0 && s.lost == nil {
		s.later()
	}
}

// tryLeave sends what is gathered if the pipe takes it now.
func (s *Sender[T]) tryLeave() error {
	end := s.w.end
	if err := end.fate(); err != nil {
		return err
	}
	if err := end.ready(s.noWait); err != nil {
		return err
	}
	if ok, err := end.hasWidth(); !ok || err != nil {
		return err
	}
	return unlessLater(s.leave(s.noWait))
}

// unlessLater drops the error of a call that would have waited.
func unlessLater(err error) error {
	if errors.Is(err, ErrWouldBlock) {
		return nil
	}
	return err
}

// Close sends what is gathered, tells the receiver that nothing follows and waits
// until that has received everything, as Writer's Close does. An error says that
// it has not. The second call does nothing. Kind: one-sided.
func (s *Sender[T]) Close(ctx context.Context) error {
	ctx = wait.Context(ctx)
	if err := s.turn.take(ctx); err != nil {
		return s.failed("Close", err)
	}
	defer s.turn.give()
	if s.closed {
		return nil
	}
	s.closed = true
	s.timer.Stop()
	err := s.lost
	if err == nil {
		err = s.leave(ctx)
	}
	return errors.Join(err, s.w.Close(ctx))
}

func (s *Sender[T]) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	var known *OpError
	if errors.As(err, &known) {
		return err
	}
	return s.w.end.fail(op, err)
}
