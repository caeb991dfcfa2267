package rpipe

import (
	"context"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A heapSide holds the state that both ends of a heap have. An end that closes puts its
// last word at the peer, and gives its memory back when it has the peer's last word:
//
//	client                                 server
//	puts nothing after it
//	goneFlag               ------------->  Wait returns; Close
//	gives memory back      <-------------  goneFlag
//	                                       gives memory back
//
// The rank's registry says later what Close could not say.
type heapSide struct {
	*pipe.End
	gate pipe.Gate
	told pipe.LastFlag // the peer knows that nothing more is put there
}

// farewell has the peer know that nothing more is put there. One that cannot
// be reached need not.
func (s *heapSide) farewell(ctx context.Context) error {
	if !s.Joined.Load() {
		if s.Broken.Load() != nil {
			return nil
		}
		s.Abandon()
		_, err := s.JoinLast(ctx)
		switch {
		case err != nil && s.Reachable():
			return err
		case err != nil:
			return nil //nolint:nilerr // the other end is not there, or of another kind
		case !s.Joined.Load():
			s.Parting.Unseen = true
			return nil
		}
	}
	if err := s.sayGone(); err != nil && s.Fate() == nil {
		return err
	}
	return nil
}

func (s *heapSide) sayGone() error {
	return s.told.Post(s.Queue(), func(ctx context.Context) error { return s.PutFlag(ctx, 0, nil, goneFlag, 1) })
}

// heard reports whether the peer puts nothing more here.
func (s *heapSide) heard() bool { return s.Flag(goneFlag) != 0 }

func (s *heapSide) Stop() {}

// Insist says what close could not.
func (s *heapSide) Insist(ctx context.Context) { s.Parting.Speak(ctx, s.owes, s.say) }

func (s *heapSide) owes() bool {
	return s.Fate() == nil && !s.Joined.Load() && s.OwesUnmet(s.heard())
}

// say looks for the peer. The registry tries again after a failure.
func (s *heapSide) say(ctx context.Context) {
	s.Rejoin(ctx, s.heard())
	if s.Joined.Load() {
		_ = s.sayGone() // it arrives, or the peer is gone
	}
}

// Leave gives the memory back once the peer puts nothing more here, and knows
// that this one does not either.
func (s *heapSide) Leave() bool {
	return s.Parting.Leave(s.mayLeave, func() {
		_ = s.Release() // no caller is left to take the error
	})
}

func (s *heapSide) mayLeave() bool {
	switch {
	case pipe.Gone(s.Fate()):
		return true
	case !s.Joined.Load():
		return s.MayLeaveUnmet(s.heard())
	}
	return s.heard() && s.told.Posted()
}
