package faulty

import "github.com/gopgas/gopgas/verbs/driver"

// refusal draws whether PostSend takes none of n requests though there is room
// for them, or only those before upTo, which is 0 if it takes all.
func (q *qp) refusal(n int) (full bool, upTo int) {
	plan := q.dev.plan
	full = roll(q.refuse, plan.QueueFull)
	partial := roll(q.refuse, plan.PartialPosts)
	upTo = q.refuse.IntN(n)
	if !partial {
		upTo = 0
	}
	return full && q.mayRefuse(), upTo
}

// mayRefuse: a refusal means "poll completions, then post again", and that must
// be possible whatever the peer does. So it happens only while a completion is
// at hand that has not been polled.
func (q *qp) mayRefuse() bool {
	q.dev.progress()
	return q.owed > 0 && q.state == driver.StateRTS
}
