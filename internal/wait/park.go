package wait

import (
	"context"

	"github.com/gopgas/gopgas/internal/mutant"
)

// park sleeps between looks until ready or until ctx ends. The end of ctx rings
// the bell, so that a sleeper has one way to wake.
func (b *Bell) park(ctx context.Context, ready func() bool) error {
	b.words.waiters.Add(1)
	defer b.words.waiters.Add(^uint32(0))
	stop := context.AfterFunc(ctx, b.Ring)
	defer stop()
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
		b.parks.Add(1)
		b.sleep(seq)
		if mutant.MissingWaiterCheck && ready() {
			return nil
		}
	}
}

// sleep returns after the sequence has moved on from seq; it may return early.
func (b *Bell) sleep(seq uint32) {
	b.mu.Lock()
	if b.words.seq.Load() != seq {
		b.mu.Unlock()
		return
	}
	if b.shared && !b.led {
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
	futexWait(&b.words.seq, seq)
	b.mu.Lock()
	b.led = false
	b.mu.Unlock()
	b.broadcast()
}
