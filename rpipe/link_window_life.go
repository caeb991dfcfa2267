package rpipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/window"
)

// await has a window's wait look at the flags that ready looks at. Any number of
// goroutines may be in it.
func (l *windowLink) await(ctx context.Context, flags []int, ready func() bool) error {
	u := l.c.enlist()
	defer l.c.dismiss(u)
	for _, i := range flags {
		u.Slots = append(u.Slots, l.slots[i])
	}
	for {
		if done, err := l.c.sleep(ctx, u, ready); done {
			return nil
		} else if err != nil {
			return l.verdict(err)
		}
	}
}

func (l *windowLink) alsoAwait(ctx context.Context, flags []int, ready func() bool) error {
	return l.await(ctx, flags, ready)
}

func (l *windowLink) ring() { l.c.ring() }

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

// verdict says what a window's error comes from: what became of the peer,
// rather than what else there is.
func (l *windowLink) verdict(err error) error {
	if err == nil {
		return nil
	}
	if gone := l.fate(); gone != nil {
		return gone
	}
	return l.c.verdict(err)
}

// release gives the berth back. One whose other end is gone stays taken: what
// was on its way may still arrive, and the window has lost a rank anyway.
func (l *windowLink) release() error {
	err := l.settle(func(window.Request) bool { return true })
	l.shared.drop()
	if l.fate() != nil {
		return err
	}
	return errors.Join(err, l.c.give(l.berth))
}

func (l *windowLink) disowned() bool { return l.c.value(l.slots[len(l.slots)-1:]) != 0 }

func (l *windowLink) disown(ctx context.Context) bool {
	word := window.Signal{Slot: l.misfit.slot + l.c.flags(), Value: 1}
	return l.c.w.PutNotify(ctx, l.peer, 0, nil, word) == nil
}
