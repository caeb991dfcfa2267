package tcp

import (
	"slices"

	"github.com/gopgas/gopgas/verbs/driver"
)

// stage says how far a request has come.
type stage uint8

const (
	stageQueued stage = iota // no byte of it is in a frame
	stageFramed              // some of its frames are queued or sent
	stageSent                // all of them are
	stageDone                // nothing more will come of it
)

// A request is one slot of a send queue.
type request struct {
	driver.WorkRequest        // Local is the slot's own array
	saved              []byte // the payload, once it was captured
	length             int    // bytes in all
	framed             int    // bytes in frames so far
	received           int    // bytes of the response so far
	seq                uint64 // how many requests were framed before it
	stage              stage
	reported           bool // has its completion already
	dropped            bool // canceled, and nothing more of it leaves
}

// answered tells whether a response with data comes back.
func (r *request) answered() bool {
	switch r.Op {
	case driver.OpRead, driver.OpFetchAdd, driver.OpCmpSwap:
		return true
	case driver.OpAtomic:
		return len(r.Local) > 0
	}
	return false
}

// consumes tells whether it takes a receive of the peer.
func (r *request) consumes() bool { return r.Op == driver.OpSend || r.Op == driver.OpWriteImm }

// sendQueue is a ring of requests: retired ones leave at the head, the cursor
// parts those that are all in frames from those that are not.
type sendQueue struct {
	slots  []request
	head   int
	framed int // requests from head to the cursor
	count  int // requests in all

	seq      uint64 // requests framed in full
	acked    uint64 // of those, how many the peer has applied
	asked    uint64 // seq when an acknowledgement was last asked for
	credits  uint64 // receives that the peer has ever posted
	consumed uint64 // of those, how many requests have taken

	spares [][]byte // for payloads that are captured

	// reads holds the slots that await a response, oldest first.
	reads     [maxReads]*request
	readHead  int
	readCount int
}

// maxReads is how many READs and atomics of one QP may await their response.
const maxReads = 64

func newSendQueue(depth, segments int) sendQueue {
	q := sendQueue{slots: make([]request, depth)}
	all := make([]driver.Segment, depth*segments)
	for i := range q.slots {
		q.slots[i].Local = all[i*segments : i*segments : (i+1)*segments]
	}
	return q
}

func (s *sendQueue) full() bool { return s.count == len(s.slots) }

func (s *sendQueue) at(i int) *request {
	i += s.head
	if i >= len(s.slots) {
		i -= len(s.slots)
	}
	return &s.slots[i]
}

// push copies wr into the next slot.
func (s *sendQueue) push(wr *driver.WorkRequest) *request {
	r := s.at(s.count)
	local := append(r.Local[:0], wr.Local...)
	*r = request{WorkRequest: *wr, length: wr.Length()}
	r.Local = local
	s.count++
	return r
}

// unpush takes back the request that was pushed last.
func (s *sendQueue) unpush() { s.count-- }

// capture copies the payload from an offset on, if it is inline and could not leave
// at once, or was canceled.
func (s *sendQueue) capture(r *request, from int) {
	r.saved = s.buffer(r.length)
	at := 0
	for i := range r.Local {
		m := r.Local[i].Mem
		if skip := max(0, from-at); skip < len(m) {
			copy(r.saved[at+skip:], m[skip:])
		}
		at += len(m)
	}
	clear(r.Local)
	r.Local = append(r.Local[:0], driver.Segment{Mem: r.saved})
}

// maxSpares is how many buffers of captured payloads a queue keeps for the next.
const maxSpares = 2

// buffer returns n bytes, which hold anything. Small payloads leave the spares to
// those that are worth it.
func (s *sendQueue) buffer(n int) []byte {
	for i := len(s.spares) - 1; i >= 0 && n > copyMax; i-- {
		if b := s.spares[i]; cap(b) >= n {
			s.spares = slices.Delete(s.spares, i, i+1)
			return b[:n]
		}
	}
	return make([]byte, n)
}

// spare keeps a buffer that nothing refers to, in place of a smaller one if need be.
// What was captured of canceled requests may be of any length, and is not kept.
func (s *sendQueue) spare(b []byte) {
	if cap(b) <= copyMax || cap(b) > maxInline {
		return
	}
	if len(s.spares) < maxSpares {
		s.spares = append(s.spares, b)
		return
	}
	for i := range s.spares {
		if cap(s.spares[i]) < cap(b) {
			s.spares[i] = b
			return
		}
	}
}

// next is the first request that is not all in frames, or nil.
func (s *sendQueue) next() *request {
	if s.framed == s.count {
		return nil
	}
	return s.at(s.framed)
}

// begun returns how many requests were framed, in full or in part.
func (s *sendQueue) begun() uint64 {
	if r := s.next(); r != nil && r.stage == stageFramed {
		return s.seq + 1
	}
	return s.seq
}

// passed moves the cursor behind r, whose last frame was just queued.
func (s *sendQueue) passed(r *request) {
	r.stage, r.seq = stageSent, s.seq
	s.seq++
	s.framed++
	if r.answered() && !r.dropped {
		s.reads[(s.readHead+s.readCount)%maxReads] = r
		s.readCount++
	}
}

// oldestRead is the request that the next response belongs to, or nil.
func (s *sendQueue) oldestRead() *request {
	if s.readCount == 0 {
		return nil
	}
	return s.reads[s.readHead]
}

// answeredRead retires the oldest read from the list; its response implies
// that everything before it was applied.
func (s *sendQueue) answeredRead(r *request) {
	s.reads[s.readHead] = nil
	s.readHead = (s.readHead + 1) % maxReads
	s.readCount--
	r.stage = stageDone
	s.acked = max(s.acked, r.seq+1)
}

// finished tells whether the oldest request may leave the queue.
func (s *sendQueue) finished(r *request) bool {
	return r.stage == stageDone || r.stage == stageSent && !r.answered() && r.seq < s.acked
}

// pop frees the oldest slot.
func (s *sendQueue) pop() {
	r := &s.slots[s.head]
	clear(r.Local)
	s.spare(r.saved)
	r.Local, r.saved = r.Local[:0], nil
	if s.head++; s.head == len(s.slots) {
		s.head = 0
	}
	if s.framed > 0 {
		s.framed--
	}
	s.count--
}

// reset empties the queue and forgets the connection.
func (s *sendQueue) reset() {
	for s.count > 0 {
		s.pop()
	}
	*s = sendQueue{slots: s.slots}
}
