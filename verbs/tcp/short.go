//go:build linux

package tcp

import "github.com/gopgas/gopgas/verbs/driver"

// Short unsignaled WRITEs go to the buffer of the connection as they are posted. Those in a row with
// one ID are a run. A run takes one place of the send queue, and one step when the peer has
// acknowledged it (put_issue of 8 bytes: 0.89 of the time):
//
//	places of the queue   | READ | run of 3 WRITEs | SEND |     3 places
//	requests              |  1   |  2    3    4    |  5   |     crowd is 2: no more may be posted than without runs
//
// The goroutine that posts calls writeShort; acknowledgements and cancellations call shorten and each.

// writeShort posts wr, and reports whether it did. It posts only an inline WRITE of one
// segment that can go to the buffer now, behind all earlier requests.
func (q *qp) writeShort(wr *driver.WorkRequest) bool {
	if wr.Op != driver.OpWrite || wr.Flags != driver.Inline || len(wr.Local) != 1 || q.closed ||
		q.state != driver.StateRTS || q.link == nil || q.link.out.blocked || q.sq.framed != q.sq.Len() {
		return false
	}
	mem, out := wr.Local[0].Mem, &q.link.out
	size := headerSizes[kindWrite] + len(mem)
	if len(mem) > copyMax || !out.open() || !out.fits(size, requestRoom) || !q.sq.extendRun(wr, len(mem)) {
		return false
	}
	f := frame{kind: kindWrite, flags: flagLast | q.wantAck(wr.Flags), stream: q.stream.id, length: uint32(len(mem)), addr: wr.Remote.Addr, key: wr.Remote.RKey}
	b := out.extend(size)
	f.encode(b)
	copy(b[headerSizes[kindWrite]:], mem)
	q.sq.seq++
	return true
}

// extendRun counts a WRITE of n bytes that is framed next, in the newest run or in a new one. It
// returns false if the queue is full.
func (s *sendQueue) extendRun(wr *driver.WorkRequest, n int) bool {
	if s.Room() == 0 {
		return false
	}
	if r := s.Last(); r != nil && r.run > 0 && r.ID == wr.ID && !r.Canceled {
		r.run++
		r.seq = s.seq
		s.crowd++
		return true
	}
	r := s.Ring.Push()
	r.SetSent(wr, n)
	r.saved, r.length, r.received, r.seq, r.stage, r.dropped, r.run = nil, n, 0, s.seq, stageSent, false, 1
	s.framed++
	return true
}

// shorten takes those requests off a run that the peer has acknowledged, if it has not acknowledged all.
func (s *sendQueue) shorten(r *request) {
	if first := r.seq + 1 - uint64(r.run); r.run > 1 && s.acked > first {
		gone := int(s.acked - first)
		r.run -= gone
		s.crowd -= gone
	}
}

// Room returns how many requests can be posted.
func (s *sendQueue) Room() int { return s.Ring.Room() - s.crowd }

// each calls f for the request, or for each request of a run.
func (r *request) each(f func()) {
	for range max(1, r.run) {
		f()
	}
}
