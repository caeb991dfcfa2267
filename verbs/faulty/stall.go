package faulty

import "time"

// A Stall stops a context for a time: no request starts and no completion can
// be polled. Requests that started before go on below.
type Stall struct {
	Every int           // after each so many requests posted on the context; 0 is never
	For   time.Duration // by the clock; polls do not shorten it
}

// posted counts a request toward the next stall.
func (d *device) posted() {
	if d.plan.Stall.Every == 0 {
		return
	}
	if d.posts++; d.posts%d.plan.Stall.Every == 0 {
		d.stalledUntil = d.now.Add(d.plan.Stall.For)
	}
}

// stalled reports whether the device stands still now.
func (d *device) stalled() bool {
	if !d.now.Before(d.stalledUntil) {
		return false
	}
	d.wakeAt(d.stalledUntil)
	return true
}
