package loop

import "github.com/gopgas/gopgas/verbs/driver"

// pendingSend is a request that could not be carried out when it was posted.
// Its slices are kept from one use of the slot to the next.
type pendingSend struct {
	wr       driver.WorkRequest
	segs     []driver.Segment
	inline   []byte
	canceled bool // completed already
}

// detach copies the request's bytes, so that its memory is the caller's again.
func (p *pendingSend) detach() {
	p.inline = p.inline[:0]
	for i := range p.wr.Local {
		p.inline = append(p.inline, p.wr.Local[i].Mem...)
	}
	clear(p.segs)
	p.segs = append(p.segs[:0], driver.Segment{Mem: p.inline})
	p.wr.Local = p.segs
}

// sendQueue is a ring of requests that wait. It stays empty, and without
// memory, as long as all can be carried out at once.
type sendQueue struct {
	depth        int
	slots        []pendingSend
	first, count int
}

func (s *sendQueue) push(wr *driver.WorkRequest) error {
	if s.count == s.depth {
		return driver.ErrQueueFull
	}
	if s.slots == nil {
		s.slots = make([]pendingSend, s.depth)
	}
	p := s.at(s.count)
	s.count++
	p.wr, p.canceled = *wr, false
	p.segs = append(p.segs[:0], wr.Local...)
	p.wr.Local = p.segs
	if wr.Flags&driver.Inline != 0 {
		p.detach()
	}
	return nil
}

func (s *sendQueue) at(i int) *pendingSend { return &s.slots[(s.first+i)%s.depth] }

func (s *sendQueue) head() *pendingSend {
	if s.count == 0 {
		return nil
	}
	return s.at(0)
}

// pop lets go of the caller's memory.
func (s *sendQueue) pop() {
	p := s.at(0)
	clear(p.segs)
	p.wr = driver.WorkRequest{}
	s.first = (s.first + 1) % s.depth
	s.count--
}

// cancel takes out the oldest request with this id; an Announced WRITE stays,
// with a copy of its bytes.
func (s *sendQueue) cancel(id uint64) (driver.Opcode, bool) {
	for i := range s.count {
		p := s.at(i)
		if p.wr.ID != id || p.canceled {
			continue
		}
		op := p.wr.Op
		if p.wr.Flags&driver.Announced != 0 {
			p.canceled = true
			p.detach()
			return op, true
		}
		for ; i > 0; i-- { // the slots swap, so that none shares its slices
			*s.at(i), *s.at(i - 1) = *s.at(i - 1), *s.at(i)
		}
		s.pop()
		return op, true
	}
	return 0, false
}

func (s *sendQueue) clear() {
	for s.count > 0 {
		s.pop()
	}
}

// postedRecv is memory offered to a SEND.
type postedRecv struct {
	id   uint64
	segs []driver.Segment
	size int
}

// recvQueue is a ring of receives.
type recvQueue struct {
	depth        int
	slots        []postedRecv
	first, count int
}

func (r *recvQueue) push(wr *driver.RecvRequest) error {
	if r.count == r.depth {
		return driver.ErrQueueFull
	}
	if r.slots == nil {
		r.slots = make([]postedRecv, r.depth)
	}
	p := r.at(r.count)
	r.count++
	p.id, p.size = wr.ID, 0
	p.segs = append(p.segs[:0], wr.Local...)
	for i := range p.segs {
		p.size += len(p.segs[i].Mem)
	}
	return nil
}

func (r *recvQueue) at(i int) *postedRecv { return &r.slots[(r.first+i)%r.depth] }

func (r *recvQueue) head() *postedRecv {
	if r.count == 0 {
		return nil
	}
	return r.at(0)
}

func (r *recvQueue) pop() {
	clear(r.at(0).segs)
	r.first = (r.first + 1) % r.depth
	r.count--
}

// remove takes out the oldest receive with this id.
func (r *recvQueue) remove(id uint64) bool {
	for i := range r.count {
		if r.at(i).id != id {
			continue
		}
		for ; i > 0; i-- {
			*r.at(i), *r.at(i - 1) = *r.at(i - 1), *r.at(i)
		}
		r.pop()
		return true
	}
	return false
}

func (r *recvQueue) clear() {
	for r.count > 0 {
		r.pop()
	}
}
