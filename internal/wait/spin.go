package wait

import (
	"context"
	goruntime "runtime"
	"sync/atomic"
	"time"
)

// These constants bound how long a waiter looks before it sleeps. Measured on two
// cores with two to eight ranks: fewer yields lose to the futex's 4 us, and more
// gain nothing. Polling without yields is a thousand times slower once ranks
// outnumber cores.
const (
	polls  = 100
	yields = 1000
	// calls is the number of polls if they are system calls. A hundred of them take
	// 40 us, while the awaited rank may need this core (8 ranks on 2 cores, by
	// sockets: barrier of 440 us instead of 190). One poll is enough: it finds all
	// that has arrived.
	calls = 1
	// callsAlone is that number for a rank that has a core to itself. A message and its response
	// take about as long. A yield is a system call that gains nothing there (2 ranks on 2 cores, by
	// sockets: an exchange of 5.3 us instead of 5.6).
	callsAlone = 32
	// glances is the number of polls of one word, which cost a third of a
	// nanosecond each: a message between two cores takes as long.
	glances = 600
	// goschedEvery lets this process's own goroutines run now and then between
	// yields to other processes, which keep this thread's P. It does not at the
	// first yields: Gosched may wake an idle thread, which costs more than most
	// waits last (8 ranks on 2 cores: barrier of 30 us instead of 9).
	goschedEvery = 16
	// enough ends the yields early. A thousand yields take less time, unless programs that
	// never wait need this core. Then each yield lasts as long as their turns,
	// milliseconds, while the kernel wakes a sleeper at once.
	enough = 5 * time.Millisecond
	// ctxEvery is the number of yields between looks at the context.
	ctxEvery = 64
)

// Glance polls a word for as long as a message between two cores takes, and reports
// whether it has changed from old. It serves waits that mostly end soon; a longer
// one goes on in Wait. The polls of Wait cost more, since they look at everything
// that may end the wait.
func Glance(word *atomic.Uint64, old uint64) bool {
	for range glances {
		if word.Load() != old {
			return true
		}
	}
	return false
}

// Moved returns once a word has changed from old. A goroutine of this process must be
// about to store it, with a few instructions and no wait before the store.
func Moved(word *atomic.Uint64, old uint64) {
	for !Glance(word, old) {
		goruntime.Gosched()
	}
}

// spin polls and then yields. It reports done if ready became true, and gives up after a while, or
// after enough time on a busy machine. On a shared bell it yields to other processes.
func (b *Bell) spin(ctx context.Context, looks int, ready func() bool) (done bool, err error) {
	for range looks {
		if ready() {
			return true, nil
		}
	}
	began := time.Now()
	for i := range yields {
		if i%ctxEvery == 0 && ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if b.futex == nil || i%goschedEvery == goschedEvery-1 {
			goruntime.Gosched()
		} else {
			b.futex.yield()
		}
		if ready() {
			b.ended.Add(1)
			return true, nil
		}
		if (i&(i-1) == 0 || i%goschedEvery == 0) && time.Since(began) > enough {
			return false, nil
		}
	}
	return false, nil
}
