package fabric

import (
	"errors"
	"sync"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// The fabric takes messages out of a mailbox even while the program computes. A device
// rings only if the fabric has armed it (driver.Armer), for the next completion. To arm
// it after each completion costs a system call and a wake-up for every message. That is in
// vain while a goroutine polls. So the fabric does as network drivers do (Salim, Olsson and
// Kuznetsov, "Beyond Softnet", 2001). After an event that finds the queue being polled,
// it arms the device only once there is a lull.
//
//	armed --event--> no goroutine polled since the last look: take in, arm
//	             \-> a goroutine did: take in, look again after the lull

// lull is the time without a poll after which the fabric arms the device again. A message
// that arrives meanwhile may have to wait as long.
const lull = time.Millisecond

// attention decides when a binding's device rings.
type attention struct {
	mu    sync.Mutex
	seen  uint64 // Fabric.looks at the last look
	again *time.Timer
}

// attend has messages taken in while no goroutine of the program polls. The device's
// events do so, or a goroutine of the fabric if every completion rings the bell.
func (f *Fabric) attend(b *binding) {
	if !f.listens(b) || !errors.Is(f.arm(b), driver.ErrUnsupported) {
		return
	}
	f.listening.Go(func() {
		for b.cq.Wait(f.ctx) == nil {
			f.Progress()
		}
	})
}

// arm requests an event of b when the next message arrives.
func (f *Fabric) arm(b *binding) error { return b.cq.Arm(true) }

// completionEvent polls the completions that are there and arranges the next event.
func (f *Fabric) completionEvent(b *binding) {
	if !b.attention.postpone(f, b) {
		// An error means that the device is gone; operations report that.
		_ = f.arm(b)
		// A message that arrived in between raises no event: this look takes it.
		f.drain()
		if b.due.Load() > 0 { // an unsolicited completion makes room for responses
			_ = b.cq.Arm(false)
			f.drain()
		}
	}
	f.bell.Ring()
}

// postpone looks. It reports whether a timer, instead of an event, starts the next look.
func (a *attention) postpone(f *Fabric, b *binding) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	seen := a.seen
	if a.seen = f.drain(); a.seen == seen || f.closed.Load() {
		return false
	}
	if a.again == nil {
		a.again = time.AfterFunc(lull, func() { f.lookAgain(b) })
	} else {
		a.again.Reset(lull)
	}
	return true
}

// lookAgain takes in messages at the end of the lull.
func (f *Fabric) lookAgain(b *binding) {
	if f.begin() != nil {
		return
	}
	defer f.making.Done()
	f.completionEvent(b)
}

// beforeSleep has devices ring for a goroutine that is about to sleep. It then looks at
// all bindings, also at those that Progress skips because they are idle.
func (f *Fabric) beforeSleep() {
	for _, b := range f.bindings {
		// The device is gone, or rings at every completion anyway.
		_ = b.cq.Arm(false)
	}
	f.look()
}
