package faulty

import "github.com/gopgas/gopgas/verbs/driver"

// refusal draws whether PostSend takes none of n requests though there is room.
// Else upTo is the number of requests that it takes, or 0 for all.
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

// mayRefuse reports whether a completion waits to be polled. A refusal means
// "poll completions, then post again", which must succeed whether or not the
// peer acts.
func (q *qp) mayRefuse() bool {
	q.dev.progress()
	return q.owed > 0 && q.state == driver.StateRTS
}
