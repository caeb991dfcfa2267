package chaos

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// A fuse is the context of one step, which may end during the step.
type fuse struct {
	context.Context
	inner context.Context // without the countdown
	name  string
	stop  context.CancelFunc
}

// drawFuse returns a fuse below ctx: none in two of five steps. Otherwise the context
// has ended, ends at its k-th look or 20 ms later, or ends after some microseconds.
func drawFuse(ctx context.Context, rng *rand.Rand) fuse {
	inner, stop := context.WithCancel(ctx)
	switch rng.IntN(10) {
	case 0:
		stop()
		return fuse{inner, inner, "ended before", stop}
	case 1, 2, 3:
		looks := 1 + rng.IntN(12)
		timer := time.AfterFunc(20*time.Millisecond, stop) // a waiter that sleeps does not look
		return fuse{&countdown{Context: inner, stop: stop, left: looks}, inner, fmt.Sprintf("look %d", looks), func() { timer.Stop(); stop() }}
	case 4, 5:
		after := time.Duration(math.Pow(10, 3+4*rng.Float64())) // 1 us to 10 ms
		timed, stopTimed := context.WithTimeout(inner, after)
		return fuse{timed, timed, after.String(), func() { stopTimed(); stop() }}
	}
	return fuse{inner, inner, "no fuse", stop}
}

// ended reports whether the fuse ended its context.
func (f fuse) ended() bool { return f.inner.Err() != nil }

// excuses reports whether err is the end of the fuse's context.
func (f fuse) excuses(err error) bool {
	return f.ended() && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
}

// A countdown is a context that ends at its left-th look.
type countdown struct {
	context.Context
	stop context.CancelFunc
	mu   sync.Mutex
	left int
}

func (c *countdown) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		c.stop()
	}
}

func (c *countdown) Done() <-chan struct{} { c.look(); return c.Context.Done() }
func (c *countdown) Err() error            { c.look(); return c.Context.Err() }
