package faulty

import "time"

// A Stall has nothing move on a context for a time: no request starts and
// nothing can be polled. What was started before goes on below.
type Stall struct {
	Every int           // after each so many requests posted on the context; 0 is never
	For   time.Duration // by the clock, however often anyone polls
}

// posted counts a request towards the next stall.
func (d *device) posted() {
	if d.plan.Stall.Every == 0 {
		return
	}
	if d.posts++; d.posts%d.plan.Stall.Every == 0 {
		d.stalledUntil = d.now.Add(d.plan.Stall.For)
	}
}

func (d *device) stalled() bool {
	if !d.now.Before(d.stalledUntil) {
		return false
	}
	d.wakeAt(d.stalledUntil)
	return true
}
