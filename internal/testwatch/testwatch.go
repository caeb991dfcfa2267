// Package testwatch ends a test that makes no progress, however long the test takes
// altogether.
//
//	once a second:  steps moved        -> patience starts anew
//	                steps stood still  -> one look less
//	after 30 looks in vain: all goroutines print where they are, and the context ends with ErrStuck
//	after 30 more: the process ends, if it is in Run
//
// Steps are counts that stand still while all waits are in vain, such as
// wait.Bell.Ended. A watchdog without steps bounds one wait: a test that waits
// again takes a new one. It counts looks, not time: a process without a core does
// not look, so it loses no patience. Where n times as many threads want to run as the
// machine has cores, each look counts an n-th.
package testwatch

import (
	"context"
	"errors"
	"flag"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// ErrStuck is the cause of a context that a watchdog has ended.
var ErrStuck = errors.New("watchdog: no step was made for too long: something that should have ended or failed did not")

// looks is the number of looks in vain after which a watchdog ends its context, and of further ones
// after which it ends the process.
const looks = 30

// Patience returns the bound of a wait: 30 seconds, times GOPGAS_PATIENCE on an
// emulated machine, and longer on a busy one. It serves calls that take a time, such as a
// socket's deadline.
func Patience() time.Duration { return time.Duration(looks * float64(interval()) * pressure()) }

// Rounds returns the number of times that a test repeats something. That is n, or a
// fifth of n under the race detector, which takes ten times as long.
func Rounds(n int) int {
	if Race {
		return max(1, n/5)
	}
	return n
}

// Soak reports whether tests shall take their time.
func Soak() bool { return os.Getenv("GOPGAS_SOAK") == "1" }

// ShortOr returns the number of times that a test repeats something: short, or long when
// soaking.
func ShortOr(short, long int) int {
	if Soak() {
		return long
	}
	return short
}

// interval returns the time between two looks of a watchdog.
func interval() time.Duration {
	times, err := strconv.ParseFloat(os.Getenv("GOPGAS_PATIENCE"), 64)
	if err != nil || times <= 0 {
		times = 1
	}
	return time.Duration(times * float64(time.Second))
}

// With returns a context that ends with ErrStuck once the sum of steps has stood still for
// Patience. Ahead of that, all goroutines of the process print where they are. The caller calls stop
// when the waits under it are over. Stop does not wait for a count of steps that runs, which may wait for a stuck
// goroutine: steps read nothing behind it that others write without synchronization.
func With(ctx context.Context, steps ...func() uint64) (watched context.Context, stop context.CancelFunc) {
	w := watch(ctx, steps)
	return w.ctx, w.stop
}

// Run calls f with the context of With, and returns its error. If f does not return although its
// context has ended, by whatever cause, the goroutines print where they are and the process ends.
func Run(ctx context.Context, f func(ctx context.Context) error, steps ...func() uint64) error {
	w := watch(ctx, steps)
	w.mu.Lock()
	w.waits = true
	w.mu.Unlock()
	defer w.stop()
	return f(w.ctx)
}

// Context is With for a test; the end of the test stops the watchdog. The context
// outlasts the test's own, so that cleanups may wait.
func Context(t testing.TB, steps ...func() uint64) context.Context {
	t.Helper()
	ctx, stop := With(context.Background(), steps...)
	t.Cleanup(stop)
	return ctx
}

// Overlap lets sixteen tests that call t.Parallel run at once, where go test runs one on
// each core: such tests only wait. A TestMain calls it. The flag -parallel wins.
func Overlap() {
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
}

// HeedSignals has the child processes of this one heed signals that a shell made this
// process ignore: an interrupt, if the tests run in the background. A TestMain calls
// it.
func HeedSignals() {
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP} {
		if signal.Ignored(sig) { // a child inherits ignoring, but not a handler
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}
