package faulty

import (
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// lock takes mu and reads the clock: everything under the lock happens at the
// instant now.
func (d *device) lock() {
	d.mu.Lock()
	d.now = time.Now()
}

// unlock releases mu, rings the bell if a completion can be polled, and wakes
// the pump if it is due.
func (d *device) unlock() {
	moved := d.moved
	d.moved = false
	sooner := !d.next.IsZero() && (d.armed.IsZero() || d.next.Before(d.armed))
	d.mu.Unlock()
	if moved {
		d.bell.Ring()
	}
	if sooner {
		d.wake()
	}
}

// wakeAt makes the pump progress no later than at t.
func (d *device) wakeAt(t time.Time) {
	if d.next.IsZero() || t.Before(d.next) {
		d.next = t
	}
}

// wake has the pump look.
func (d *device) wake() {
	select {
	case d.kick <- struct{}{}:
	default:
	}
}

// progress takes completions from below, starts requests and delivers
// completions, as far as no hold prevents it.
func (d *device) progress() {
	if d.closed {
		return
	}
	d.next = time.Time{}
	if len(d.outbox) > 0 {
		d.wakeAt(d.now)
	}
	d.hear()
	if d.stalled() {
		return
	}
	for more := true; more; {
		more = false
		for _, c := range d.cqs {
			c.pull()
		}
		for _, q := range d.qps {
			more = q.start() > 0 || more
		}
	}
	for _, c := range d.cqs {
		c.collect()
	}
}

// completed hands a completion from below to its queue.
func (d *device) completed(c driver.Completion) {
	q := d.byNum[c.QP]
	if q == nil {
		return
	}
	if c.ID&recvBit != 0 {
		q.recvs.finish(c)
	} else if r := q.sends.find(c.ID); r != nil {
		q.ended(r, c)
	}
}

// pump progresses at the end of each hold, so that no request waits for a poll.
// It reports events with no lock held.
func (d *device) pump() {
	defer close(d.stopped)
	alarm := time.NewTimer(0)
	defer alarm.Stop()
	for {
		select {
		case <-d.stop:
			return
		case <-d.kick:
		case <-alarm.C:
		}
		for _, n := range d.turn(alarm) {
			if d.onEvent != nil && n.current() {
				d.onEvent(n.event)
			}
		}
	}
}

// turn progresses once, sets the alarm and returns the events to report.
func (d *device) turn(alarm *time.Timer) []news {
	d.lock()
	defer d.unlock()
	d.progress()
	reports := d.outbox
	d.outbox = nil
	d.armed = d.next
	if d.armed.IsZero() {
		alarm.Stop()
	} else {
		alarm.Reset(d.armed.Sub(d.now))
	}
	return reports
}
