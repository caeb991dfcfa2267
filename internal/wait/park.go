package wait

import (
	"context"
	"errors"
	"time"

	"github.com/gopgas/gopgas/internal/mutant"
)

// A waiter for a condition without a ring sleeps for a [Pause] before each look. With a look
// in LongestPause an idle wait of 5 s took 91 ms of processor time, on a loaded machine.
const (
	// LongestPause is the longest time after which such a waiter finds its condition true.
	LongestPause = 8 * time.Millisecond
	// longAfter bounds the sleep of a brief wait.
	longAfter = 200 * time.Millisecond
	// overtaken is the longest pause of a waiter whose ringer's look at the waiters may
	// overtake the store of the condition. It need not be short: the store becomes visible
	// within the first pause, and a ringer that stores later sees the waiter.
	overtaken = time.Second
)

// ErrLong ends a brief wait.
var ErrLong = errors.New("the waiter has slept for long")

// park sleeps between looks until ready or until ctx ends. The end of ctx and the end of
// a pause ring the bell, so that a sleeper has one way to wake.
func (b *Bell) park(ctx context.Context, m Manner, ready func() bool) error {
	b.words.waiters.Add(1)
	defer b.words.waiters.Add(^uint32(0))
	stop := context.AfterFunc(ctx, b.Ring)
	defer stop()
	var pauses pauses
	defer pauses.stop()
	var began time.Time
	if m.Brief {
		began = time.Now()
		defer time.AfterFunc(longAfter, b.Ring).Stop()
	}
	for {
		seq := b.words.seq.Load()
		if b.onPark != nil {
			b.onPark()
		}
		if !mutant.MissingWaiterCheck && ready() {
			b.ended.Add(1)
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if m.Brief && time.Since(began) >= longAfter {
			return ErrLong
		}
		b.parks.Add(1)
		if m.Longest > 0 {
			pauses.begin(b, m.Longest)
		}
		b.sleep(seq)
		if mutant.MissingWaiterCheck && ready() {
			return nil
		}
	}
}

// pauses are the times between the looks of a waiter whose condition rings no bell.
type pauses struct {
	timer *time.Timer
	last  Pause
}

// begin has b rung at the end of the next pause.
func (p *pauses) begin(b *Bell, longest time.Duration) {
	pause := p.last.Next(longest)
	if p.timer == nil {
		p.timer = time.AfterFunc(pause, b.Ring)
		return
	}
	p.timer.Reset(pause)
}

// stop ends the timer. No later pause rings the bell.
func (p *pauses) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// sleep returns after the sequence has moved on from seq; it may return early.
func (b *Bell) sleep(seq uint32) {
	b.mu.Lock()
	if b.words.seq.Load() != seq {
		b.mu.Unlock()
		return
	}
	if b.futex != nil && !b.led {
		b.led = true
		b.mu.Unlock()
		b.lead(seq)
		return
	}
	if b.changed == nil {
		b.changed = make(chan struct{})
	}
	changed := b.changed
	b.mu.Unlock()
	<-changed
}

// lead sleeps in the futex for all goroutines of this process. It gives the lead
// up before it wakes them, so that one that goes on waiting takes it.
func (b *Bell) lead(seq uint32) {
	b.futex.wait(seq)
	b.mu.Lock()
	b.led = false
	b.mu.Unlock()
	b.broadcast()
}
