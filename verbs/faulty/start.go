package faulty

import (
	"errors"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// retryEvery is the time until the pump tries a request again. The wrapped
// provider had no room for it, or it waits for earlier ones.
const retryEvery = 500 * time.Microsecond

var errInjected = errors.New("failed by the faulty provider's plan")

// start posts below the requests that are no longer held, and returns how many.
// It keeps their order, but for those that may pass.
func (q *qp) start() (n int) {
	var held ahead
	for i := 0; i < q.sends.Len() && q.state == driver.StateRTS; i++ {
		r := q.sends.At(i)
		if r.phase != waiting {
			continue
		}
		if held.any() && !q.lets(held, r) {
			break
		}
		if !q.dev.over(r.start) {
			if !q.passable(r) {
				break
			}
			held.add(r.Op)
			continue
		}
		if !q.startOne(r, i) {
			break
		}
		n++
	}
	return n
}

// startOne posts the ith request below, or makes the plan's fault happen
// instead. It returns false if the queue cannot go on for now.
func (q *qp) startOne(r *request, i int) bool {
	if r.cut != nil {
		q.cut(r.cut)
		return false
	}
	if r.doom != driver.Success && q.allDone(i) {
		q.fail(r, r.doom, errInjected)
		return false
	}
	if r.doom != driver.Success || q.sendCQ.below >= q.sendCQ.room {
		q.dev.wakeAt(q.dev.now.Add(retryEvery))
		return false
	}
	q.post[0] = r.WorkRequest
	q.post[0].ID = r.number
	q.post[0].Flags |= driver.Signaled
	n, err := q.QP.PostSend(q.post[:])
	q.post[0] = driver.WorkRequest{}
	if n == 1 {
		r.phase = started
		q.sendCQ.below++
		return true
	}
	q.refused(r, err)
	return false
}

// refused handles a request that faulty took and the provider below refused.
func (q *qp) refused(r *request, err error) {
	switch {
	case errors.Is(err, driver.ErrQueueFull):
		q.dev.wakeAt(q.dev.now.Add(retryEvery))
	case errors.Is(err, driver.ErrState), errors.Is(err, driver.ErrClosed), errors.Is(err, driver.ErrLost):
		q.sever(err)
	default:
		q.fail(r, driver.GeneralError, err)
	}
}

// allDone reports whether no request before the ith is under way.
func (q *qp) allDone(i int) bool {
	for j := range i {
		if q.sends.At(j).phase < done {
			return false
		}
	}
	return true
}
