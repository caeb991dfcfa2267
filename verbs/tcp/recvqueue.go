package tcp

import "github.com/gopgas/gopgas/verbs/driver"

// recvQueue is a ring of posted receives. Their number is the peer's credit:
// it starts no SEND that would find none, so nothing ever waits at the target.
type recvQueue struct {
	slots []driver.RecvRequest
	head  int
	count int

	posted     uint64 // since the connection was made, with those posted before
	consumed   uint64 // of those, how many messages have taken
	advertised uint64 // posted, as the peer knows it
}

func newRecvQueue(depth, segments int) recvQueue {
	q := recvQueue{slots: make([]driver.RecvRequest, depth)}
	all := make([]driver.Segment, depth*segments)
	for i := range q.slots {
		q.slots[i].Local = all[i*segments : i*segments : (i+1)*segments]
	}
	return q
}

func (r *recvQueue) push(wr *driver.RecvRequest) {
	slot := &r.slots[(r.head+r.count)%len(r.slots)]
	slot.ID = wr.ID
	slot.Local = append(slot.Local[:0], wr.Local...)
	r.count++
	r.posted++
}

// first is the receive that the next message takes, or nil.
func (r *recvQueue) first() *driver.RecvRequest {
	if r.count == 0 {
		return nil
	}
	return &r.slots[r.head]
}

func (r *recvQueue) pop() {
	slot := &r.slots[r.head]
	clear(slot.Local)
	slot.Local = slot.Local[:0]
	r.head = (r.head + 1) % len(r.slots)
	r.count--
	r.consumed++
}

// starving tells whether the peer should hear of new receives soon: it knows
// of less than half of those that are there.
func (r *recvQueue) starving() bool {
	return r.posted > r.advertised && 2*(r.advertised-r.consumed) <= uint64(r.count)
}

// reconnect starts the counts that both sides of a new connection share.
func (r *recvQueue) reconnect() {
	r.posted, r.consumed, r.advertised = uint64(r.count), 0, 0
}

func (r *recvQueue) reset() {
	for r.count > 0 {
		r.pop()
	}
	r.reconnect()
}
