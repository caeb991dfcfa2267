package farheap

import (
	"context"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A side holds the state that both ends of a heap have. An end that closes puts its
// last flag at the peer, and gives its memory back when it has the peer's last flag:
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
	gate gate
	told pipe.LastFlag // the peer knows that nothing more is put there
}

func newSide(p *pipe.End) *side {
	s := &side{End: p, gate: newGate()}
	p.Role = s
	return s
}

// depart tells the peer that nothing more is put there.
func (s *side) depart(ctx context.Context) error {
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
