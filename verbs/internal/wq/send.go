package wq

import (
	"slices"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A Request is a work request in a queue.
type Request struct {
	driver.WorkRequest        // Local and Runs are the request's own slices
	Sent               int    // payload bytes that have left, or are about to
	Canceled           bool   // the request has its completion, though it is still in the queue
	copied             []byte // payload that was captured
}

// keepCopied is how large a buffer for captured payload a request keeps for the
// next one at its place.
const keepCopied = 4 << 10

// Set copies wr, since the caller may change it and its segments' slice. The
// payload stays where it is.
func (r *Request) Set(wr *driver.WorkRequest) {
	local, runs := append(r.Local[:0], wr.Local...), append(r.Runs[:0], wr.Runs...)
	r.WorkRequest, r.Sent, r.Canceled = *wr, 0, false
	r.Local, r.Runs = local, runs
}

// SetSent makes r a request without its payload, all n bytes of which are on their way.
func (r *Request) SetSent(wr *driver.WorkRequest, n int) {
	r.WorkRequest = driver.WorkRequest{ID: wr.ID, Op: wr.Op, Flags: wr.Flags, Local: r.Local[:0], Runs: r.Runs[:0]}
	r.Sent, r.Canceled = n, false
}

// Capture copies the payload, so that its memory is the caller's again.
func (r *Request) Capture() {
	n := r.Length()
	r.copied = slices.Grow(r.copied[:0], n)[:n]
	r.CaptureInto(r.copied, 0)
}

// CaptureInto is Capture into buf, which is as long as the payload, of the bytes
// behind the first skip ones.
func (r *Request) CaptureInto(buf []byte, skip int) {
	Gather(buf[skip:], r.Local, skip)
	clear(r.Local)
	r.Local = append(r.Local[:0], driver.Segment{Mem: buf})
}

// keepRuns is the number of runs for which a request keeps memory for the next one at its place.
const keepRuns = 64

// Release forgets the caller's memory.
func (r *Request) Release() {
	clear(r.Local)
	r.Local = r.Local[:0]
	if cap(r.Runs) > keepRuns {
		r.Runs = nil
	}
	if cap(r.copied) > keepCopied {
		r.copied = nil
	}
}

// A SendQueue holds requests that could not be carried out when they were posted.
type SendQueue struct{ Ring[Request] }

// NewSendQueue returns an empty queue.
func NewSendQueue(depth int) SendQueue { return SendQueue{NewRing[Request](depth)} }

// Push copies wr to the end of the queue, with its payload if it is Inline, and
// returns the copy. It returns driver.ErrQueueFull without room.
func (q *SendQueue) Push(wr *driver.WorkRequest) (*Request, error) {
	if q.Room() == 0 {
		return nil, driver.ErrQueueFull
	}
	r := q.Ring.Push()
	r.Set(wr)
	if wr.Flags&driver.Inline != 0 {
		r.Capture()
	}
	return r, nil
}

// Pop drops the oldest request.
func (q *SendQueue) Pop() {
	q.First().Release()
	q.Ring.Pop(1)
}

// Cancel gives the memory of the oldest request with this id back, and returns its
// opcode. A request of which bytes were sent, and an Announced WRITE, stay in the
// queue with a copy of their payload; any other leaves it.
func (q *SendQueue) Cancel(id uint64) (op driver.Opcode, ok bool) {
	for i := range q.Len() {
		r := q.At(i)
		if r.ID != id || r.Canceled {
			continue
		}
		op = r.Op
		if r.Canceled = r.Sent > 0 || r.Flags&driver.Announced != 0; r.Canceled {
			r.Capture()
		} else {
			r.Release()
			q.Remove(i)
		}
		return op, true
	}
	return 0, false
}

// Flush empties the queue, whose oldest request failed with status.
// It pushes a completion for each request that has none: with status and cause for
// the oldest, with driver.Flushed for the others. If the oldest was canceled, the next
// one gets driver.RetryExceeded, since a lost connection concerns both, but no other
// status.
func (q *SendQueue) Flush(status driver.Status, cause error, push func(driver.Completion)) {
	for ; q.Len() > 0; q.Pop() {
		r := q.First()
		if r.Canceled && status == driver.RetryExceeded {
			continue
		}
		if !r.Canceled {
			push(driver.Completion{ID: r.ID, Status: status, Op: r.Op, Err: cause})
		}
		status, cause = driver.Flushed, nil
	}
}

// Clear empties the queue without completions.
func (q *SendQueue) Clear() {
	for q.Len() > 0 {
		q.Pop()
	}
}
