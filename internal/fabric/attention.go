package fabric

import (
	"errors"
	"sync"
	"time"

	"github.com/gopgas/gopgas/verbs/driver"
)

// What comes into a mailbox must be taken in while the program computes. Devices
// ring only when they are asked to (driver.Armer), for the next completion. To
// ask after each costs a system call and a wake-up for every message, in vain
// while somebody polls. So it is done as network drivers do it (Salim, Olsson and
// Kuznetsov, "Beyond Softnet", 2001): an event that finds the queue being polled
// is the last one until there is a lull.
//
//	armed --event--> nobody polled since the last look: take in, arm
//	             \-> somebody did: take in, look again after the lull

// lull is how long nobody polls before events are asked for again, in which what
// comes in may have to wait.
const lull = time.Millisecond

// attention is what decides when a binding's device rings.
type attention struct {
	mu    sync.Mutex
	seen  uint64 // Fabric.looks at the last look
	again *time.Timer
}

// attend has what comes in taken in when nobody polls: by the device's events,
// or by a goroutine where every completion rings the bell.
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

// arm asks b for an event when something comes in.
func (f *Fabric) arm(b *binding) error { return b.cq.Arm(true) }

// completionEvent takes in what has completed and sees to the next event.
func (f *Fabric) completionEvent(b *binding) {
	if !b.attention.postpone(f, b) {
		// An error means that the device is gone, which operations report.
		_ = f.arm(b)
		// What came in between is seen by this look: it raises no event.
		f.drain()
		if b.due.Load() > 0 { // a completion that is not solicited makes room for answers
			_ = b.cq.Arm(false)
			f.drain()
		}
	}
	f.bell.Ring()
}

// postpone looks, and tells whether it will do so again instead of an event.
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

// lookAgain is what the lull ends with.
func (f *Fabric) lookAgain(b *binding) {
	if f.begin() != nil {
		return
	}
	defer f.making.Done()
	f.completionEvent(b)
}

// beforeSleep is what goroutines do that are about to sleep: they have devices ring,
// and look where looks of those who poll spare themselves the trouble.
func (f *Fabric) beforeSleep() {
	for _, b := range f.bindings {
		// As above, or every completion rings anyway.
		_ = b.cq.Arm(false)
	}
	f.look()
}
