package shm

import (
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// sendQueue holds the requests that could not be executed when they were
// posted, in order.
type sendQueue struct {
	entries []pending
	head, n int
}

// pending is a request that waits. Its segments are copied, since the caller's
// slice is the caller's again, and so are its bytes if it is Inline.
type pending struct {
	wr       driver.WorkRequest
	sent     int // bytes of a SEND that are in the ring
	segments []driver.Segment
	inline   []byte
	canceled bool // completed already
}

// keepInline is how large a buffer for inline data an entry keeps for the next.
const keepInline = 4 << 10

func newSendQueue(depth int) sendQueue { return sendQueue{entries: make([]pending, max(depth, 1))} }

func (s *sendQueue) at(i int) *pending { return &s.entries[(s.head+i)%len(s.entries)] }

func (s *sendQueue) first() *pending {
	if s.n == 0 {
		return nil
	}
	return s.at(0)
}

// push fails when the queue is full. It allocates when an entry sees more
// segments or inline bytes than before.
func (s *sendQueue) push(wr *driver.WorkRequest, sent int) error {
	if s.n == len(s.entries) {
		return fmt.Errorf("shm: %w: %d requests wait for the peer; poll completions, then post again", driver.ErrQueueFull, s.n)
	}
	p := s.at(s.n)
	s.n++
	p.wr, p.sent, p.canceled = *wr, sent, false
	p.segments = append(p.segments[:0], wr.Local...)
	p.wr.Local = p.segments
	if wr.Flags&driver.Inline != 0 {
		p.detach()
	}
	return nil
}

// detach copies the request's bytes, so that its memory is the caller's again.
func (p *pending) detach() {
	p.inline = p.inline[:0]
	for _, s := range p.wr.Local {
		p.inline = append(p.inline, s.Mem...)
	}
	clear(p.segments)
	p.segments = append(p.segments[:0], driver.Segment{Mem: p.inline})
	p.wr.Local = p.segments
}

// drop removes the first request and its references to memory.
func (s *sendQueue) drop() {
	p := s.at(0)
	clear(p.segments)
	p.wr.Local = nil
	if cap(p.inline) > keepInline {
		p.inline = nil
	}
	s.head = (s.head + 1) % len(s.entries)
	s.n--
}

func (s *sendQueue) clear() {
	for s.n > 0 {
		s.drop()
	}
}

// void makes a request that has not begun do nothing when its turn comes.
func (p *pending) void() {
	clear(p.segments)
	p.segments = p.segments[:0]
	p.wr = driver.WorkRequest{ID: p.wr.ID, Op: driver.OpWrite}
}
