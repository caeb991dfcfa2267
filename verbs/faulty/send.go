package faulty

import "github.com/gopgas/gopgas/verbs/driver"

type phase uint8

const (
	waiting   phase = iota // held here; nothing below knows of it
	started                // posted below
	done                   // ended; its completion is held until due
	delivered              // its completion went ahead of its turn
)

// A request is a posted work request with all that was drawn for it.
type request struct {
	number uint64 // its ID below: counts the requests of the QP from 1
	wr     driver.WorkRequest
	segs   []driver.Segment
	inline []byte
	phase  phase

	start  hold  // waiting until then
	yields bool  // later requests may start before
	late   delay // from its end until the completion can be polled
	doom   driver.Status
	cut    *Cut

	end driver.Completion // once done, or canceled
	due hold

	canceled bool // while it was waiting; it goes on
	told     bool // its completion is delivered
}

// set copies wr: the caller may change it and its segments' slice, and the
// memory of an inline request, as soon as PostSend has returned.
func (r *request) set(number uint64, wr *driver.WorkRequest) {
	r.number, r.wr, r.phase = number, *wr, waiting
	r.canceled, r.told = false, false
	r.segs = append(r.segs[:0], wr.Local...)
	r.wr.Local = r.segs
	if wr.Flags&driver.Inline != 0 {
		r.detach()
	}
}

// detach copies the request's bytes, so that its memory is the caller's again.
func (r *request) detach() {
	r.inline = r.inline[:0]
	for i := range r.wr.Local {
		r.inline = append(r.inline, r.wr.Local[i].Mem...)
	}
	clear(r.segs)
	r.segs = append(r.segs[:0], driver.Segment{Mem: r.inline})
	r.wr.Local = r.segs
}

// release lets go of the caller's memory.
func (r *request) release() {
	clear(r.segs)
	r.wr.Local = nil
}

// sendQueue is a ring of requests in the order of posting. Slots keep their
// slices from one use to the next.
type sendQueue struct {
	slots        []request
	first, count int
	next         uint64 // number of the next request
}

func (s *sendQueue) init(depth int) { s.slots, s.next = make([]request, depth), 1 }

func (s *sendQueue) full() bool { return s.count == len(s.slots) }

func (s *sendQueue) at(i int) *request { return &s.slots[(s.first+i)%len(s.slots)] }

func (s *sendQueue) push(wr *driver.WorkRequest) *request {
	r := s.at(s.count)
	r.set(s.next, wr)
	s.count++
	s.next++
	return r
}

func (s *sendQueue) pop() {
	s.at(0).release()
	s.first = (s.first + 1) % len(s.slots)
	s.count--
}

// find returns the started request of that number; the completion of one that
// was forgotten by a reset finds none.
func (s *sendQueue) find(number uint64) *request {
	i := number - (s.next - uint64(s.count))
	if i >= uint64(s.count) {
		return nil
	}
	if r := s.at(int(i)); r.phase == started {
		return r
	}
	return nil
}
