package rpipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/window"
)

// await has a window's wait look at the flags that ready looks at, and at the
// bell. Any number of goroutines may be in it.
func (l *windowLink) await(ctx context.Context, flags []int, ready func() bool) error {
	l.waiting.Add(1) // pairs with the load in ring: one of the two sees the other
	defer l.waiting.Add(-1)
	u := l.untils.Get().(*window.Until)
	defer l.untils.Put(u)
	u.Slots = append(u.Slots[:0], l.slots[len(l.slots)-1])
	for _, i := range flags {
		u.Slots = append(u.Slots, l.slots[i])
	}
	for {
		u.Values = u.Values[:0]
		for i := range u.Slots {
			u.Values = append(u.Values, l.value(u.Slots[i:i+1]))
		}
		if ready() {
			return nil
		}
		if _, _, err := l.c.w.WaitNotify(ctx, *u); err != nil {
			if ready() { // what has arrived counts
				return nil
			}
			return l.verdict(err)
		}
	}
}

func (l *windowLink) alsoAwait(ctx context.Context, flags []int, ready func() bool) error {
	return l.await(ctx, flags, ready)
}

func (l *windowLink) ring() {
	if l.waiting.Load() == 0 {
		return
	}
	// Puts at one's own rank fail with the job alone, and then waits end anyway.
	_ = l.c.w.PutNotify(context.Background(), l.c.team.Rank, 0, nil, window.Signal{Slot: l.slots[len(l.slots)-1], Add: true, Value: 1})
}

// progress looks for what never comes.
func (l *windowLink) progress() bool {
	if r := l.theirs.Load(); r != nil && r.mem != nil {
		return false
	}
	_, _, _, _ = l.c.w.TestNotify(window.Until{Slots: l.slots[:1], Condition: window.AtLeast, Value: ^uint64(0)})
	return true
}

func (l *windowLink) flush(ctx context.Context) error { return l.verdict(l.c.w.Flush(ctx, l.peer)) }

func (l *windowLink) fate() error {
	if l.c.closed.Load() {
		return errCarrierClosed
	}
	return l.c.team.Fate(l.c.team.Members[l.peer])
}

// verdict says what a window's error comes from: what became of the other end,
// rather than what else there is.
func (l *windowLink) verdict(err error) error {
	if err == nil {
		return nil
	}
	if gone := l.fate(); gone != nil {
		return gone
	}
	if errors.Is(err, window.ErrFreed) {
		return errCarrierClosed
	}
	return err
}

// release gives the berth back. One whose other end is gone stays taken: what
// was on its way may still arrive, and the window has lost a rank anyway.
func (l *windowLink) release() error {
	err := l.settle(func(window.Request) bool { return true })
	if l.fate() != nil {
		return err
	}
	return errors.Join(err, l.c.give(l.berth))
}
