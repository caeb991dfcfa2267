//go:build linux

package tcp

import (
	"sync/atomic"
	"time"
)

// CombineDelay bounds how long a request that combines may stay queued while the
// program neither posts, polls nor waits. The scheduler may add to it.
const CombineDelay = 300 * time.Microsecond

// ticker runs the device's housekeeping every CombineDelay while there is any. It
// flushes combined frames, and notices that the program no longer polls.
type ticker struct {
	timer   *time.Timer
	running atomic.Bool
	stopped atomic.Bool
}

func (d *device) startTicker() {
	d.ticker.timer = time.AfterFunc(time.Hour, d.tick)
	d.ticker.timer.Stop()
}

// need starts the ticker unless it is running.
func (t *ticker) need() {
	if !t.running.Load() && !t.running.Swap(true) && !t.stopped.Load() {
		t.timer.Reset(CombineDelay)
	}
}

func (t *ticker) stop() {
	t.stopped.Store(true)
	t.timer.Stop()
}

// tick flushes the frames that wait for others, and gives progress back to the device's goroutine if the
// program polls no more. The ticker's timer calls it, again after CombineDelay while the device is busy.
func (d *device) tick() {
	d.flushWaiting()
	d.handBack()
	if !d.busy() {
		d.ticker.running.Store(false)
		// A goroutine that made the device busy since may have seen the ticker running.
		if !d.busy() || d.ticker.running.Swap(true) {
			return
		}
	}
	if !d.ticker.stopped.Load() {
		d.ticker.timer.Reset(CombineDelay)
	}
}

// busy reports whether the ticker is needed.
func (d *device) busy() bool { return d.dirty.Load() || !d.server.armed.Load() }

// handBack gives progress back to the goroutine when the program has not
// polled since the last tick.
func (d *device) handBack() {
	if !d.token.TryLock() {
		return
	}
	defer d.token.Unlock()
	d.hotLeft = 0
	s := &d.server
	if s.polls == s.seen && !s.armed.Load() && !d.closed {
		s.arm(d.epfd, true)
	}
	s.seen = s.polls
}

// flushLater makes the next poll or tick flush q. Precondition: q's lock is held.
func (d *device) flushLater(q *qp) {
	d.flushMu.Lock()
	d.waiting = append(d.waiting, q)
	d.flushMu.Unlock()
	d.dirty.Store(true)
	d.ticker.need()
}

// flushWaiting sends the combined frames that wait, and rings the bell when a queue pair
// broke meanwhile.
func (d *device) flushWaiting() {
	d.flushMu.Lock()
	d.dirty.Store(false)
	list := d.waiting
	d.waiting, d.spare = d.spare[:0], nil
	d.flushMu.Unlock()
	for _, q := range list {
		q.lock()
		q.dirty = false
		q.flush()
		q.unlock()
	}
	clear(list)
	d.flushMu.Lock()
	d.spare = list[:0]
	d.flushMu.Unlock()
	d.ring()
}
