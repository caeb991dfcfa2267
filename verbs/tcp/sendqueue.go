//go:build linux

package tcp

import (
	"slices"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/internal/wq"
)

// stage is the progress of a request.
type stage uint8

const (
	stageQueued stage = iota // no byte of it is in a frame
	stageFramed              // some of its frames are queued or sent
	stageSent                // all of them are
	stageDone                // it has ended
)

// A request is a slot of a send queue. Sent counts its bytes that are in frames.
type request struct {
	wq.Request
	saved    []byte // the payload, once it was captured
	length   int    // bytes in all
	received int    // bytes of the response so far
	seq      uint64 // requests framed before it
	stage    stage
	dropped  bool // canceled: no more of its frames leave
	run      int  // short WRITEs that it stands for, see writeShort; else 0
}

// hasResponse reports whether the peer sends a response to the request, with bytes or a value.
func (r *request) hasResponse() bool { return hasResponse(&r.WorkRequest) }

// hasResponse reports whether the peer sends a response to the request, with bytes or a value.
func hasResponse(wr *driver.WorkRequest) bool {
	switch wr.Op {
	case driver.OpRead, driver.OpReadBlocks, driver.OpFetchAdd, driver.OpCmpSwap:
		return true
	case driver.OpAtomic:
		return len(wr.Local) > 0
	case driver.OpAccumulate:
		return wr.Flags&driver.Fetch != 0
	}
	return false
}

// takesData reports whether the response fills the request's segments in DATA frames.
func (r *request) takesData() bool {
	return r.Op == driver.OpRead || r.Op == driver.OpReadBlocks || r.Op == driver.OpAccumulate
}

// copied reports whether the connection's buffer takes a copy of the payload.
func (r *request) copied() bool {
	return r.length <= copyMax || r.length <= inlineCopy && r.Flags&driver.Inline != 0 && r.saved == nil
}

// consumes reports whether the request takes a receive of the peer.
func (r *request) consumes() bool { return r.Op == driver.OpSend || r.Op == driver.OpWriteImm }

// sendQueue is a ring of requests. Retired requests leave as the oldest. A cursor
// parts the requests that are in frames in full from the later ones.
type sendQueue struct {
	wq.Ring[request]
	framed int // requests from the oldest to the cursor
	crowd  int // requests of runs beyond their places

	seq       uint64 // requests framed in full
	acked     uint64 // requests that the peer has applied
	ackWanted uint64 // seq when an acknowledgement was last requested
	credits   uint64 // receives that the peer has ever posted
	consumed  uint64 // receives that requests have taken

	spares [][]byte // for payloads that are captured

	reads wq.Ring[*request] // those that await a response
}

// maxReads is how many READs and atomics of one QP may await their response.
const maxReads = 64

// newSendQueue makes a queue with room for the segments of all requests, so that a post allocates
// nothing.
func newSendQueue(depth, segments int) sendQueue {
	places := wq.NewPreparedRing(depth, func(places []request) {
		all := make([]driver.Segment, len(places)*segments)
		for i := range places {
			places[i].Local, all = all[:0:segments], all[segments:]
		}
	})
	return sendQueue{Ring: places, reads: wq.NewRing[*request](maxReads)}
}

// Push copies wr to the end of the queue. Precondition: there is room.
func (s *sendQueue) Push(wr *driver.WorkRequest) *request {
	r := s.Ring.Push()
	r.Set(wr)
	r.saved, r.length, r.received, r.seq, r.stage, r.dropped, r.run = nil, wr.Length(), 0, 0, stageQueued, false, 0
	return r
}

// capture copies the payload of a request from an offset on. The request is inline and
// could not leave at once, or canceled and goes on.
func (s *sendQueue) capture(r *request, from int) {
	r.saved = s.buffer(r.length)
	r.CaptureInto(r.saved, from)
}

// maxSpares is the number of buffers of captured payloads that a queue keeps for reuse.
const maxSpares = 2

// buffer returns n bytes with any content. Small payloads do not use the spares.
func (s *sendQueue) buffer(n int) []byte {
	for i := len(s.spares) - 1; i >= 0 && n > copyMax; i-- {
		if b := s.spares[i]; cap(b) >= n {
			s.spares = slices.Delete(s.spares, i, i+1)
			return b[:n]
		}
	}
	return make([]byte, n)
}

// spare keeps an unused buffer, in place of a smaller one if need be. It does not keep
// the buffers of canceled requests, which may have any length.
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

// next returns the oldest request that is not in frames in full, or nil.
func (s *sendQueue) next() *request {
	if s.framed == s.Len() {
		return nil
	}
	return s.At(s.framed)
}

// begun returns how many requests were framed, in full or in part.
func (s *sendQueue) begun() uint64 {
	if r := s.next(); r != nil && r.stage == stageFramed {
		return s.seq + 1
	}
	return s.seq
}

// passed moves the cursor behind r after its last frame was queued.
func (s *sendQueue) passed(r *request) {
	r.stage, r.seq = stageSent, s.seq
	s.seq++
	s.framed++
	if r.hasResponse() && !r.dropped {
		*s.reads.Push() = r
	}
}

// oldestRead returns the request of the next response, or nil.
func (s *sendQueue) oldestRead() *request {
	if r := s.reads.First(); r != nil {
		return *r
	}
	return nil
}

// endRead takes the oldest read off the list. Its response implies that the peer
// has applied all requests before it.
func (s *sendQueue) endRead(r *request) {
	s.reads.Pop(1)
	r.stage = stageDone
	s.acked = max(s.acked, r.seq+1)
}

// finished reports whether r, as the oldest request, may leave the queue.
func (s *sendQueue) finished(r *request) bool {
	return r.stage == stageDone || r.stage == stageSent && !r.hasResponse() && r.seq < s.acked
}

// Pop drops the oldest request.
func (s *sendQueue) Pop() {
	r := s.First()
	r.Release()
	s.spare(r.saved)
	s.crowd -= max(0, r.run-1)
	r.saved = nil
	s.Ring.Pop(1)
	if s.framed > 0 {
		s.framed--
	}
}

// reset empties the queue and forgets the connection.
func (s *sendQueue) reset() {
	for s.Len() > 0 {
		s.Pop()
	}
	s.reads.Pop(s.reads.Len())
	*s = sendQueue{Ring: s.Ring, reads: s.reads}
}
