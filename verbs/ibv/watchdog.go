//go:build ibverbs

package ibv

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// How often the watchdog looks, and how long a device may take to flush.
const (
	lookEvery  = 200 * time.Millisecond
	flushLimit = 2 * time.Second
)

// watchdog looks after requests that the device should end and may not. Its
// timer runs while there are any.
type watchdog struct {
	running atomic.Bool
	mu      sync.Mutex // held while looking
	timer   *time.Timer
	stopped bool
}

func (w *watchdog) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// watch is what the watchdog knows of a queue pair.
type watch struct {
	sends, recvs uint32    // the oldest ones outstanding
	since        time.Time // since when they are, as far as was seen
}

// watchOver has the watchdog look. It costs a load while it does already.
func (d *device) watchOver() {
	if !d.watchdog.running.Load() && d.watchdog.running.CompareAndSwap(false, true) {
		d.watchdog.timer.Reset(lookEvery)
	}
}

// look is called by the timer.
func (d *device) look() {
	w := &d.watchdog
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	w.running.Store(false) // who posts from here on starts it again
	for _, q := range d.queuePairs() {
		if q.inspect() {
			d.watchOver()
		}
	}
}

// inspect ends what makes no progress, and tells whether to look again.
func (q *qp) inspect() bool {
	age, limit := q.stalled()
	if limit == 0 {
		return false
	}
	if age < limit/2 {
		return true
	}
	// Perhaps only nobody polls.
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

// stalled returns for how long nothing has ended, and for how long that may
// be; 0 where nothing has to.
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

// expire gives up a peer that the device does not give up.
func (q *qp) expire(age time.Duration) {
	cause := fmt.Errorf("%w: the device has completed nothing for %v", driver.ErrLost, age.Round(time.Millisecond))
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

// harvestFor takes completions from the device on behalf of the watchdog, and
// tells whether the device had no more.
func (c *completionQueue) harvestFor() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.harvest()
}
