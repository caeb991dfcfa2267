package pipe

import (
	"sync"
	"sync/atomic"
	"time"
)

// A Clock calls late at most bound after Arm, in a goroutine of its own. No timer runs
// while the clock is not armed.
type Clock struct {
	bound time.Duration // 0: never
	armed atomic.Bool
	timer *time.Timer

	mu   sync.Mutex          // held by a tick, which ends before Stop returns
	late func() (again bool) // nil: stopped
}

// Start sets the bound and the function.
func (k *Clock) Start(bound time.Duration, late func() (again bool)) {
	k.bound, k.late = bound, late
	if bound > 0 {
		k.timer = time.AfterFunc(time.Hour, k.tick)
		k.timer.Stop()
	}
}

// Arm has the clock call late at most bound from now. It costs a load if the clock is armed.
func (k *Clock) Arm() {
	if k.bound > 0 && !k.armed.Load() && k.armed.CompareAndSwap(false, true) {
		k.timer.Reset(k.bound)
	}
}

// Armed reports whether the clock will call late.
func (k *Clock) Armed() bool { return k.armed.Load() }

// Runs reports whether the clock has a bound.
func (k *Clock) Runs() bool { return k.bound > 0 }

// tick calls late once.
func (k *Clock) tick() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed.Store(false) // a later record arms it again
	if k.late != nil && k.late() {
		k.Arm()
	}
}

// Stop waits for a tick that is under way. No tick follows.
func (k *Clock) Stop() {
	if k.bound > 0 {
		k.timer.Stop()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.late = nil
}
