package wq

import "github.com/gopgas/gopgas/verbs/driver"

// A RecvQueue holds posted receives.
type RecvQueue struct {
	Ring[driver.RecvRequest] // Local is the entry's own slice
}

// NewRecvQueue returns an empty queue for receives of so many segments.
func NewRecvQueue(depth, segments int) RecvQueue {
	return RecvQueue{NewPreparedRing(depth, func(places []driver.RecvRequest) {
		all := make([]driver.Segment, len(places)*segments)
		for i := range places {
			places[i].Local, all = all[:0:segments], all[segments:]
		}
	})}
}

// Push copies wr to the end of the queue. It returns driver.ErrQueueFull without
// room. It allocates at the first uses of the queue only.
func (q *RecvQueue) Push(wr *driver.RecvRequest) error {
	if q.Room() == 0 {
		return driver.ErrQueueFull
	}
	r := q.Ring.Push()
	r.ID = wr.ID
	r.Local = append(r.Local[:0], wr.Local...)
	return nil
}

// Pop drops the oldest receive and forgets its memory.
func (q *RecvQueue) Pop() {
	q.release(q.First())
	q.Ring.Pop(1)
}

func (q *RecvQueue) release(r *driver.RecvRequest) {
	clear(r.Local)
	r.Local = r.Local[:0]
}

// Cancel takes the oldest receive with this id out of the queue, and reports
// whether there was one.
func (q *RecvQueue) Cancel(id uint64) bool {
	for i := range q.Len() {
		if r := q.At(i); r.ID == id {
			q.release(r)
			q.Remove(i)
			return true
		}
	}
	return false
}

// Flush empties the queue. It pushes a completion with driver.Flushed for each
// receive.
func (q *RecvQueue) Flush(push func(driver.Completion)) {
	for ; q.Len() > 0; q.Pop() {
		push(driver.Completion{ID: q.First().ID, Status: driver.Flushed, Op: driver.OpRecv})
	}
}

// Clear empties the queue without completions.
func (q *RecvQueue) Clear() {
	for q.Len() > 0 {
		q.Pop()
	}
}
