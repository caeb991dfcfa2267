package faulty

import (
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// A phase says how far a request has come.
type phase uint8

const (
	waiting   phase = iota // held here; not posted below
	started                // posted below
	done                   // ended; its completion is held until due
	delivered              // its completion went ahead of its turn
)

// A request is a posted work request with the faults drawn for it. A canceled
// Announced WRITE that waits goes on from a copy.
type request struct {
	wq.Request
	number uint64 // its ID below: counts the requests of the QP from 1
	phase  phase

	start  hold  // waiting until then
	yields bool  // later requests may start before it
	late   delay // time from its end until the completion can be polled
	doom   driver.Status
	cut    *Cut

	end driver.Completion // once done, or canceled
	due hold

	told bool // its completion has been delivered
}

// sendQueue is a ring of requests in the order of posting.
type sendQueue struct {
	wq.Ring[request]
	next uint64 // number of the next request
}

// Push copies wr to the end of the queue. Once PostSend has returned, the caller
// may change wr, its segments' slice and the memory of an inline request.
func (s *sendQueue) Push(wr *driver.WorkRequest) *request {
	r := s.Ring.Push()
	r.Set(wr)
	if wr.Flags&driver.Inline != 0 {
		r.Capture()
	}
	r.number, r.phase, r.told = s.next, waiting, false
	s.next++
	return r
}

// Pop drops the oldest request.
func (s *sendQueue) Pop() {
	s.First().Release()
	s.Ring.Pop(1)
}

// find returns the started request of that number, or nil if a reset has
// forgotten it.
func (s *sendQueue) find(number uint64) *request {
	i := number - (s.next - uint64(s.Len()))
	if i >= uint64(s.Len()) {
		return nil
	}
	if r := s.At(int(i)); r.phase == started {
		return r
	}
	return nil
}
