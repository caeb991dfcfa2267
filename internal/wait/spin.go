package wait

import (
	"context"
	goruntime "runtime"
	"sync/atomic"
	"time"
)

// How long to look before sleeping. Measured on two cores with two to eight
// ranks: fewer yields lose to the futex's 4 us, more gain nothing, and polling
// without yields is a thousand times slower once ranks outnumber cores.
const (
	polls  = 100
	yields = 1000
	// calls are polls that are system calls: a hundred of them take 40 us, which the
	// rank that is waited for may need this core for (8 ranks on 2 cores, by sockets:
	// barrier of 440 us instead of 190). One is enough: what is there is found by it.
	calls = 1
	// callsAlone are those of a rank that has a core to itself, where nobody is in a hurry
	// for it: a message and its answer take about as long, and a yield is a system call
	// that brings nothing (2 ranks on 2 cores, by sockets: an exchange of 5.3 us instead of 5.6).
	callsAlone = 32
	// glances are polls of one word, which cost a third of a nanosecond each: a
	// message between two cores takes as long.
	glances = 600
	// goschedEvery lets this process's own goroutines run now and then between
	// yields to other processes, which keep this thread's P. Not at the first:
	// Gosched may wake an idle thread, which costs more than most waits last
	// (8 ranks on 2 cores: barrier of 30 us instead of 9).
	goschedEvery = 16
	// enough ends the yields early. A thousand take less, unless programs that never wait
	// need this core: then each yield lasts as long as their turns, milliseconds, while the
	// kernel wakes a sleeper at once.
	enough = 5 * time.Millisecond
	// ctxEvery is how many yields pass between looks at the context.
	ctxEvery = 64
)

// Glance polls a word for as long as a message between two cores takes, and tells
// whether it is another than old. It is for what comes soon or else is waited for by
// Wait, whose polls cost more, since they look at everything that may end the wait.
func Glance(word *atomic.Uint64, old uint64) bool {
	for range glances {
		if word.Load() != old {
			return true
		}
	}
	return false
}

// Moved returns once a word is another than old, which a goroutine of this process is
// about to store: between it and the store lie a few instructions, and no wait.
func Moved(word *atomic.Uint64, old uint64) {
	for !Glance(word, old) {
		goruntime.Gosched()
	}
}

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
		if !b.shared || i%goschedEvery == goschedEvery-1 {
			goruntime.Gosched()
		} else {
			schedYield()
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
