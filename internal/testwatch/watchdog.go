package testwatch

import (
	"context"
	"fmt"
	"os"
	goruntime "runtime"
	"sync"
	"time"
)

// A watchdog looks at one context's steps.
type watchdog struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	steps    []func() uint64
	pressure func() float64
	show     func() // the goroutines
	exit     func()

	mu      sync.Mutex
	timer   *time.Timer
	counted chan uint64 // takes the sum of a goroutine that counts; nil: none does
	seen    uint64
	missed  float64 // looks since the steps moved, or since the context ended, each divided by the pressure
	waits   bool    // for a function to return, behind the end of the context
	stuck   bool    // the watchdog has ended the context
	stopped bool
}

// watch returns a watchdog that looks from now on.
func watch(ctx context.Context, steps []func() uint64) *watchdog {
	w := &watchdog{steps: steps, pressure: pressure, show: showGoroutines, exit: exit}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(interval(), w.tick)
	return w
}

// tick looks, and sets the timer for the next look.
func (w *watchdog) tick() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.stopped && w.look() {
		w.timer.Reset(interval())
	}
}

// look reports whether the watchdog shall look again.
func (w *watchdog) look() bool {
	if w.ctx.Err() != nil && !w.waits {
		return false
	}
	moved := w.count()
	if w.missed += 1 / w.pressure(); moved && !w.stuck {
		w.missed = 0
	}
	switch {
	case w.missed < looks:
		return true
	case w.stuck:
		w.show()
		w.exit()
		return false
	}
	w.show()
	w.cancel(ErrStuck)
	w.stuck, w.missed = true, 0
	return w.waits
}

// count reports whether the steps have moved. They stand still while a count takes longer than the
// time between two looks: it may wait for a mutex that a stuck goroutine holds.
func (w *watchdog) count() (moved bool) {
	if w.counted == nil {
		counted := make(chan uint64, 1)
		w.counted = counted
		go func() {
			var sum uint64
			for _, count := range w.steps {
				sum += count()
			}
			counted <- sum
		}()
	}
	late := time.NewTimer(interval())
	defer late.Stop()
	select {
	case sum := <-w.counted:
		moved = sum != w.seen
		w.counted, w.seen = nil, sum
	case <-late.C:
	}
	return moved
}

// stop ends the watchdog and its context.
func (w *watchdog) stop() {
	w.cancel(nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// showGoroutines prints where all goroutines of this process are.
func showGoroutines() {
	stacks := make([]byte, 16<<20)
	fmt.Fprintf(os.Stderr, "%v\n\n%s\n", ErrStuck, stacks[:goruntime.Stack(stacks, true)])
}

// exit ends this process, whose goroutines it has shown.
func exit() { panic("a test waits on, although its context has ended") }
