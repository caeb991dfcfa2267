package rpipe

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A clock calls late at most bound after arm, in a goroutine of its own. Nothing
// runs while it is not armed.
type clock struct {
	bound  time.Duration // 0: never
	armed  atomic.Bool
	late   func() (again bool)
	noWait context.Context // has ended

	mu    sync.Mutex // a tick ends before stop returns
	timer *time.Timer
}

func (k *clock) start(bound time.Duration, late func() (again bool)) {
	k.bound, k.late, k.noWait = bound, late, pipe.NoWait()
	if bound > 0 {
		k.timer = time.AfterFunc(time.Hour, k.tick)
		k.timer.Stop()
	}
}

// arm sees to it that late is called in time.
func (k *clock) arm() {
	if k.bound > 0 && !k.armed.Load() && k.armed.CompareAndSwap(false, true) {
		k.timer.Reset(k.bound)
	}
}

func (k *clock) tick() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed.Store(false) // a later record arms it anew
	if k.late != nil && k.late() {
		k.arm()
	}
}

// stop waits for a tick that is under way. None follows.
func (k *clock) stop() {
	if k.bound > 0 {
		k.timer.Stop()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.late, k.bound = nil, 0
}

// late has all lanes send what they hold. It reports whether some could not.
func (c *Conveyor[T]) late() (again bool) {
	for i := range c.lanes {
		again = c.lanes[i].late(c.clock.noWait) || again
	}
	return again
}

// ConveyorStats counts what a conveyor did.
type ConveyorStats struct {
	Pushed, Pulled uint64 // records
	// Blocks that left when they were full, when their time was up, and by hand.
	Full, Late, ByHand uint64
}

type conveyorCounts struct {
	pushed, pulled, full, byHand atomic.Uint64
}
