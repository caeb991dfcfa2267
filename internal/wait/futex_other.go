//go:build !linux

package wait

import (
	goruntime "runtime"
	"sync/atomic"
	"time"
)

// Other systems have no futex, and no rank makes a shared bell there: those lie in sealed memfds, which
// only Linux has. Ranks in one process use local bells, which sleep on a channel. The functions
// below let this package build. A shared bell would work by looks, with a pause between two.

// pause is the time between two looks at the word of a shared bell.
const pause = time.Millisecond

// futexWait returns after a pause at most, or at once if *addr is not val.
func futexWait(addr *atomic.Uint32, val uint32) {
	if addr.Load() == val {
		time.Sleep(pause)
	}
}

// futexWake wakes no process: each of them looks after its pause.
func futexWake(*atomic.Uint32) {}

// schedYield lets another goroutine run.
func schedYield() { goruntime.Gosched() }
