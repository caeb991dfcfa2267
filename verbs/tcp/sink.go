//go:build linux

package tcp

import (
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// A sink is the destination of the payload in reception.
type sink struct {
	segs    []driver.Segment
	off     int // bytes of segs already written
	discard bool
	single  [1]driver.Segment
}

// into makes mem the destination.
func (s *sink) into(mem []byte) {
	s.single[0].Mem = mem
	s.scatter(s.single[:], 0)
}

// scatter makes segs from their byte off on the destination.
func (s *sink) scatter(segs []driver.Segment, off int) {
	s.segs, s.off, s.discard = segs, off, false
}

// drop discards the remaining payload and forgets the destination.
func (s *sink) drop() { s.segs, s.discard, s.single[0].Mem = nil, true, nil }

// write stores b, which fits.
func (s *sink) write(b []byte) {
	if s.discard {
		return
	}
	wq.Scatter(s.segs, s.off, b)
	s.off += len(b)
}

// front returns the next bytes of the destination that lie together, at most n.
func (s *sink) front(n int) []byte {
	skip := s.off
	for i := range s.segs {
		m := s.segs[i].Mem
		if skip < len(m) {
			return m[skip:min(len(m), skip+n)]
		}
		skip -= len(m)
	}
	return nil
}

// vector appends the next n bytes of the destination to v.
func (s *sink) vector(v []unix.Iovec, n int) []unix.Iovec {
	skip := s.off
	for i := 0; i < len(s.segs) && n > 0; i++ {
		m := s.segs[i].Mem
		if skip >= len(m) {
			skip -= len(m)
			continue
		}
		m = m[skip:]
		m = m[:min(n, len(m))]
		v = append(v, iovec(m))
		n, skip = n-len(m), 0
	}
	return v
}
