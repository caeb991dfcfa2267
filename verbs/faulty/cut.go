package faulty

import (
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A Cut breaks a connection as a request is about to start, like a cut wire.
// The oldest request that has not ended completes with RetryExceeded. The QP
// flushes all later ones and reports EventQPFatal.
type Cut struct {
	Target
	Request int  // the Nth posted on the QP, counting from 1
	Peer    bool // the peer's QP breaks as well, if the same Provider opened it
}

var errCut = fmt.Errorf("%w: cut by the faulty provider's plan", driver.ErrLost)

// cutAt returns the cut that breaks q at its nth request, or nil.
func (p *Plan) cutAt(q *qp, nth uint64) *Cut {
	for i := range p.Cuts {
		if c := &p.Cuts[i]; uint64(c.Request) == nth && c.is(q) {
			return c
		}
	}
	return nil
}

// cut breaks the connection as the plan says: this end at once, the peer at its next poll.
func (q *qp) cut(c *Cut) {
	peer := q.peer
	q.sever(errCut)
	if c.Peer {
		if other := q.dev.provider.find(peer); other != nil {
			other.dev.note(news{qp: other, life: other.life.Load(), cut: true})
		}
	}
}

// sever breaks q after it has lost its connection because of err.
func (q *qp) sever(err error) {
	q.blame(q.sends.next, err)
	q.enterErr()
	q.report(err)
}

// blame chooses the request that ends with RetryExceeded: the oldest one before
// the number next that ends without success. That request found the connection
// broken.
func (q *qp) blame(next uint64, err error) { q.blamed, q.cause = next, err }

// report reports the failure to the owner, once per connection.
func (q *qp) report(err error) {
	if q.reported {
		return
	}
	q.reported = true
	q.dev.send(news{qp: q, life: q.life.Load(),
		event: driver.AsyncEvent{Kind: driver.EventQPFatal, QP: q.num, Life: q.life.Load(), Err: err}})
}
