package faulty

import "github.com/gopgas/gopgas/verbs/driver"

// admit returns how many of n requests PostSend will take: all, or only some,
// or none, in spite of room for them. Refusing means "poll, then post again",
// which must help: so it happens only while a signalled request is
// outstanding, or is one of those taken.
func (q *qp) admit(wrs []driver.WorkRequest) int {
	full := roll(q.refuse, q.dev.plan.QueueFull)
	partial := roll(q.refuse, q.dev.plan.PartialPosts)
	cut := q.refuse.IntN(len(wrs)) // drawn in any case, for the sake of replay
	switch {
	case full && q.signaled > 0:
		return 0
	case partial && cut > 0 && (q.signaled > 0 || anySignaled(wrs[:cut])):
		return cut
	}
	return len(wrs)
}

func anySignaled(wrs []driver.WorkRequest) bool {
	for i := range wrs {
		if wrs[i].Flags&driver.Signaled != 0 {
			return true
		}
	}
	return false
}
