package rpipe

import "context"

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
	*pipe
	gate gate
	told lastFlag // the peer knows that nothing more is put there
}

// farewell has the peer know that nothing more is put there. One that cannot
// be reached need not.
func (s *heapSide) farewell(ctx context.Context) error {
	if !s.joined.Load() {
		if s.broken.Load() != nil {
			return nil
		}
		s.abandon()
		_, err := s.joinLast(ctx)
		switch {
		case err != nil && s.reachable():
			return err
		case err != nil:
			return nil //nolint:nilerr // the other end is not there, or of another kind
		case !s.joined.Load():
			s.parting.unseen = true
			return nil
		}
	}
	if err := s.sayGone(); err != nil && s.fate() == nil {
		return err
	}
	return nil
}

func (s *heapSide) sayGone() error {
	return s.told.post(s.queue(), func(ctx context.Context) error { return s.putFlag(ctx, 0, nil, goneFlag, 1) })
}

// heard reports whether the peer puts nothing more here.
func (s *heapSide) heard() bool { return s.flag(goneFlag) != 0 }

func (s *heapSide) stop() {}

// insist says what close could not.
func (s *heapSide) insist(ctx context.Context) { s.parting.speak(ctx, s.owes, s.say) }

func (s *heapSide) owes() bool {
	return s.fate() == nil && !s.joined.Load() && s.owesUnmet(s.heard())
}

// say looks for the peer. The registry tries again after a failure.
func (s *heapSide) say(ctx context.Context) {
	s.rejoin(ctx, s.heard())
	if s.joined.Load() {
		_ = s.sayGone() // it arrives, or the peer is gone
	}
}

// leave gives the memory back once the peer puts nothing more here, and knows
// that this one does not either.
func (s *heapSide) leave() bool {
	return s.parting.leave(s.mayLeave, func() {
		_ = s.release() // no caller is left to take the error
	})
}

func (s *heapSide) mayLeave() bool {
	switch {
	case gone(s.fate()):
		return true
	case !s.joined.Load():
		return s.mayLeaveUnmet(s.heard())
	}
	return s.heard() && s.told.posted()
}
