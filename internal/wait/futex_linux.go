package wait

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Without FUTEX_PRIVATE_FLAG: peers of other processes wait and wake here.
const (
	opWait = 0
	opWake = 1
)

// newFutex returns the futex on a bell's sequence.
func newFutex(addr *atomic.Uint32) *futex {
	return &futex{wait: func(val uint32) { futexWait(addr, val) }, wake: func() { futexWake(addr) }, yield: schedYield}
}

// futexWait sleeps while *addr == val. It may return early: on a signal, or if
// *addr has changed. Syscall, not RawSyscall: a thread that sleeps without the
// scheduler's knowledge would hold up the garbage collector.
func futexWait(addr *atomic.Uint32, val uint32) {
	unix.Syscall6(unix.SYS_FUTEX, word(addr), opWait, uintptr(val), 0, 0, 0) //nolint:errcheck // every outcome means: look again
}

// futexWake wakes the leader of each process that sleeps on addr.
func futexWake(addr *atomic.Uint32) {
	unix.Syscall6(unix.SYS_FUTEX, word(addr), opWake, 1<<30, 0, 0, 0) //nolint:errcheck // it does not matter if none sleeps
}

// schedYield lets another thread have this core. RawSyscall: it returns at
// once, and handing the P over would cost more than the call.
func schedYield() {
	unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) //nolint:errcheck // cannot fail
}
