package faulty

import (
	"math/rand/v2"

	"github.com/gopgas/gopgas/verbs/driver"
)

// recvBit is set in the numbers of receives, and not in those of sends.
const recvBit = 1 << 63

// recvQueue holds the receives below by number, and the ended ones. Receives
// start at once: a held one would fail the peer's SEND, which no delay may do.
type recvQueue struct {
	qp      *qp
	dice    *rand.Rand
	ids     map[uint64]uint64 // number below -> caller's ID
	next    uint64
	scratch []driver.RecvRequest

	ended []endedRecv // in the order of ending, from first on
	first int
}

// An endedRecv is a receive that has ended below, and whose completion is held.
type endedRecv struct {
	end driver.Completion
	due hold
}

// post posts wrs below under numbers of their own.
func (r *recvQueue) post(wrs []driver.RecvRequest) (int, error) {
	r.scratch = append(r.scratch[:0], wrs...)
	for i := range r.scratch {
		r.scratch[i].ID = (r.next + uint64(i)) | recvBit
	}
	n, err := r.qp.QP.PostRecv(r.scratch)
	clear(r.scratch)
	for i := range wrs[:n] {
		r.ids[(r.next+uint64(i))|recvBit] = wrs[i].ID
	}
	r.next += uint64(n)
	return n, err
}

// finish takes the completion of a receive. It drops one from before a reset.
func (r *recvQueue) finish(c driver.Completion) {
	id, ok := r.ids[c.ID]
	if !ok {
		return
	}
	delete(r.ids, c.ID)
	c.ID = id
	d := r.qp.dev
	r.ended = append(r.ended, endedRecv{c, d.hold(d.plan.delay(r.dice, d.plan.DelayCompletions))})
}

// deliver returns the next due completion.
func (r *recvQueue) deliver() (arrival, bool) {
	if r.first == len(r.ended) {
		return arrival{}, false
	}
	e := &r.ended[r.first]
	if !r.qp.dev.over(e.due) {
		return arrival{}, false
	}
	c := arrival{Completion: e.end}
	*e = endedRecv{}
	if r.first++; r.first == len(r.ended) {
		r.ended, r.first = r.ended[:0], 0
	}
	return c, true
}

// find returns the number of the oldest receive of that id.
func (r *recvQueue) find(id uint64) (number uint64, ok bool) {
	for n, i := range r.ids {
		if i == id && (!ok || n < number) {
			number, ok = n, true
		}
	}
	return number, ok
}

// forget drops all receives. The queue pair is in RESET.
func (r *recvQueue) forget() {
	clear(r.ids)
	clear(r.ended)
	r.ended, r.first = r.ended[:0], 0
}
