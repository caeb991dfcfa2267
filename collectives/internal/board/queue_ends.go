package board

import (
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/wait"
)

// A sender is the end of a queue at its sending member.
type sender struct {
	queue
	member int         // the receiver
	bell   wait.Ringer // its bell
	posted uint64      // lines, so far
	known  uint64      // lines of which the sender knows that they were taken
	held   [largeBuffers]uint64
}

// took reports whether the receiver has taken line k.
func (s *sender) took(k uint64) (bool, error) {
	if k <= s.known {
		return true, nil
	}
	taken := s.taken.Load() // pairs with the store in tell
	if taken < s.known || taken > s.posted {
		return false, ErrCorrupt
	}
	s.known = taken
	return k <= taken, nil
}

// free reports whether the next line may be written, with its large buffer if
// large is set.
func (s *sender) free(large bool) (bool, error) {
	k := s.posted + 1
	last := k - min(k, queueLines)
	if large {
		last = max(last, s.held[k%largeBuffers])
	}
	return s.took(last)
}

// line returns the next line, which is free, and its number.
func (s *sender) line() (*line, uint64) {
	k := s.posted + 1
	return &s.lines[k%queueLines], k
}

// post shows the next line to the receiver.
func (s *sender) post(l *line, seq, chain uint64, length int) {
	binary.NativeEndian.PutUint64(l.data[:], uint64(length))
	l.seq, l.chain = seq, chain
	s.posted++
	atomics.StoreRelease(&l.turn, s.posted) // pairs with the load in take
	s.bell.Ring()
}

// A receiver is the end of a queue at its receiving member.
type receiver struct {
	queue
	member int
	bell   wait.Ringer
	got    uint64 // lines, so far
	told   uint64 // lines of which the sender may know that they were taken
}

// next returns the next line, nil while it is not there.
func (r *receiver) next() (*line, error) {
	k := r.got + 1
	l := &r.lines[k%queueLines]
	switch now := l.turn.Load(); { // pairs with the store in post
	case now == k:
		return l, nil
	case now > k:
		return nil, ErrCorrupt
	}
	return nil, nil
}

// took notes that this member has taken the next line. It tells the sender at once
// if tell is set: the sender may then wait for more than lines. Otherwise it tells
// the sender so often that it never waits for a line that was taken.
func (r *receiver) took(tell bool) {
	r.got++
	if tell || r.got-r.told >= queueLines/2 {
		r.told = r.got
		atomics.StoreRelease(&r.taken.Uint64, r.got) // pairs with the load in the sender's took
		r.bell.Ring()
	}
}
