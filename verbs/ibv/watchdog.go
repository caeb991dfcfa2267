//go:build ibverbs

package ibv

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// These are the time between two checks of the watchdog, and the time in which
// a device must flush.
const (
	lookEvery  = 200 * time.Millisecond
	flushLimit = 2 * time.Second
)

// watchdog finds requests that the device should have ended. Its timer runs
// while there are requests that the device must end.
type watchdog struct {
	running atomic.Bool
	mu      sync.Mutex // held while looking
	timer   *time.Timer
	stopped bool
}

// stop ends the watchdog.
func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// watch is the watchdog's latest view of a queue pair.
type watch struct {
	sends, recvs uint32    // numbers of the oldest outstanding requests
	since        time.Time // the first check that found them so
}

// watchOver starts the watchdog's timer. It costs a load while the timer runs
// already.
func (d *device) watchOver() {
	if !d.watchdog.running.Load() && d.watchdog.running.CompareAndSwap(false, true) {
		d.watchdog.timer.Reset(lookEvery)
	}
}

// look checks all queue pairs. The timer calls it.
func (d *device) look() {
	w := &d.watchdog
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.running.Store(false) // a later post starts it again
	for _, q := range d.queuePairs() {
		if q.inspect() {
			d.watchOver()
		}
	}
}

// inspect breaks the queue pair if it makes no progress, and reports whether to
// check again.
func (q *qp) inspect() bool {
	age, limit := q.stalled()
	if limit == 0 {
		return false
	}
	if age < limit/2 {
		return true
	}
	// Perhaps only the program does not poll.
	all := q.sendCQ.harvestFor() && q.recvCQ.harvestFor()
	if age, limit = q.stalled(); limit == 0 || age < limit || !all {
		return limit != 0
	}
	if q.getState() == driver.StateErr {
		q.seize()
		return false
	}
	q.expire(age)
	return true
}

// stalled returns the time since a request ended, and the limit of that time.
// The limit is 0 if the device need not end any.
func (q *qp) stalled() (age, limit time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.state == driver.StateErr {
		if q.sends.owned+q.recvs.owned > 0 {
			limit = flushLimit
		}
	} else if due, waits := q.sends.due(); due && !waits && q.state == driver.StateRTS {
		limit = 2 * q.timeout
	}
	w := &q.watch
	if limit == 0 {
		*w = watch{}
		return 0, 0
	}
	if now := time.Now(); w.since.IsZero() || w.sends != q.sends.seq || w.recvs != q.recvs.seq {
		*w = watch{sends: q.sends.seq, recvs: q.recvs.seq, since: now}
	}
	return time.Since(w.since), limit
}

// expire breaks a connection that the device itself does not break.
func (q *qp) expire(age time.Duration) {
	cause := fmt.Errorf("%w: the device has completed nothing for %v; %s", driver.ErrLost, age.Round(time.Millisecond), seePeer)
	q.mu.Lock()
	if q.state != driver.StateRTS {
		q.mu.Unlock()
		return
	}
	q.state, q.cause, q.causeErr = driver.StateErr, driver.RetryExceeded, cause
	incarnation := q.incarnation
	q.mu.Unlock()
	q.breakDown(incarnation, driver.RetryExceeded, cause)
}

// harvestFor takes completions from the device for the watchdog, and reports
// whether the device had no more.
func (c *completionQueue) harvestFor() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.harvest()
}
