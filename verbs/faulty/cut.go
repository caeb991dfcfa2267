package faulty

import (
	"fmt"

	"github.com/gopgas/gopgas/verbs/driver"
)

// A Cut breaks a connection as a request is about to start. As if the wire had
// been cut, the oldest request that has not ended completes with
// RetryExceeded, all others are flushed, and EventQPFatal is reported.
type Cut struct {
	Target
	Request int  // the Nth posted on the QP, counting from 1
	Peer    bool // the other end learns of it as well, if it was opened through the same Provider
}

var errCut = fmt.Errorf("%w: cut by the faulty provider's plan", driver.ErrLost)

// cutAt returns the cut in whose place q's nth request stands, or nil.
func (p *Plan) cutAt(q *qp, nth uint64) *Cut {
	for i := range p.Cuts {
		if c := &p.Cuts[i]; uint64(c.Request) == nth && c.is(q) {
			return c
		}
	}
	return nil
}

func (q *qp) cut(c *Cut) {
	peer := q.peer
	q.sever(errCut)
	if c.Peer {
		if other := q.dev.provider.find(peer); other != nil {
			other.dev.note(news{qp: other, life: other.life.Load(), cut: true})
		}
	}
}

// sever breaks q for the cause err, which some time ago or only now cost it
// its connection.
func (q *qp) sever(err error) {
	q.blame(q.sends.next, err)
	q.enterErr()
	q.report(err)
}

// blame has the oldest request that ends without success, posted before the
// number next, end with RetryExceeded: it is the one that found out.
func (q *qp) blame(next uint64, err error) { q.blamed, q.cause = next, err }

// report tells the owner, once per connection.
func (q *qp) report(err error) {
	if q.reported {
		return
	}
	q.reported = true
	q.dev.send(news{qp: q, life: q.life.Load(),
		event: driver.AsyncEvent{Kind: driver.EventQPFatal, QP: q.num, Life: q.life.Load(), Err: err}})
}
