package farheap

import (
	"context"
	"sync"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// goneFlag is the peer's last flag.
const goneFlag = 0

// A side holds the state that both ends of a heap have. Each has a card; behind the server's
// lies the heap. An end that closes puts its last flag at the peer, and gives its memory back
// when it has the peer's last flag:
//
//	client                                 server
//	puts nothing after it
//	goneFlag               ------------->  Wait returns; Close
//	gives memory back      <-------------  goneFlag
//	                                       gives memory back
//
// The rank's registry puts later the flag that Close could not put.
type side struct {
	*pipe.End
	gate  gate
	using sync.RWMutex  // calls that use the server's memory hold it for reading
	told  pipe.LastFlag // the peer knows that nothing more is put there
}

// open opens one end of a heap. begin makes the rest of the end from its side.
func open[T any](ctx context.Context, op string, t *runtime.Team, peer int, client bool, opts []Option, begin func(s *side) error) error {
	p, err := pipe.Draft[T](t, peer, client, pipe.Unwrap(opts, rpipe.WithName("heap"), served))
	if err != nil {
		return p.Fail(op, err)
	}
	var o pipe.Opening
	o.Add(p, op, func() error {
		s := &side{End: p, gate: newGate()}
		p.Role = s
		return begin(s)
	})
	return o.Open(ctx)
}

// meet connects to the peer. Called inside the gate.
func (s *side) meet(ctx context.Context) error {
	if s.Joined.Load() {
		return nil
	}
	return s.Join(ctx, true)
}

// peerGone reports whether the connected peer puts nothing more here.
func (s *side) peerGone() bool { return s.Deserted || s.Heard() }

// close tells the peer that nothing more is put there, once all other calls have ended.
func (s *side) close(ctx context.Context) error {
	if s.Closed.Swap(true) {
		return nil
	}
	s.gate.shut()
	s.using.Lock()
	defer s.using.Unlock()
	err := s.Depart(ctx)
	s.Registry.Exit(s.End)
	return err
}

// Deliver puts goneFlag.
func (s *side) Deliver(context.Context) error {
	err := s.told.Post(s.Queue(), func(ctx context.Context) error { return s.PutFlag(ctx, 0, nil, goneFlag, 1) })
	if err != nil && s.Fate() == nil {
		return err
	}
	return nil
}

// Heard reports whether the peer puts nothing more here.
func (s *side) Heard() bool { return s.Flag(goneFlag) != 0 }

// Finish reports whether the peer knows that nothing more is put there.
func (s *side) Finish(context.Context, bool) bool { return s.told.Posted() }

// Stop does nothing: the ends of a heap put nothing by themselves.
func (s *side) Stop() {}
