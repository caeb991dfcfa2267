package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/window"
)

// Await has a window's wait look at the flags that ready looks at. Any number of
// goroutines may be in it.
func (l *WindowLink) Await(ctx context.Context, flags []int, ready func() bool) error {
	u := l.c.Enlist()
	defer l.c.Dismiss(u)
	for _, i := range flags {
		u.Slots = append(u.Slots, l.Slots[i])
	}
	for {
		if done, err := l.c.Sleep(ctx, u, ready); done {
			return nil
		} else if err != nil {
			return l.verdict(err)
		}
	}
}

// AlsoAwait implements Link.
func (l *WindowLink) AlsoAwait(ctx context.Context, flags []int, ready func() bool) error {
	return l.Await(ctx, flags, ready)
}

// Ring implements Link.
func (l *WindowLink) Ring() { l.c.Ring() }

// Progress polls the window by a test that never succeeds.
func (l *WindowLink) Progress() bool {
	if r := l.theirs.Load(); r != nil && r.mem != nil {
		return false
	}
	_, _, _, _ = l.c.w.TestNotify(window.Until{Slots: l.Slots[:1], Condition: window.AtLeast, Value: ^uint64(0)})
	return true
}

// Flush implements Link.
func (l *WindowLink) Flush(ctx context.Context) error { return l.verdict(l.c.w.Flush(ctx, l.peer)) }

// Fate implements Link.
func (l *WindowLink) Fate() error {
	if l.c.closed.Load() {
		return errPoolClosed
	}
	return l.c.team.Fate(l.c.team.Members[l.peer])
}

// verdict returns the fate of the peer in place of a window's error, if the peer is gone.
func (l *WindowLink) verdict(err error) error {
	if err == nil {
		return nil
	}
	if gone := l.Fate(); gone != nil {
		return gone
	}
	return l.c.verdict(err)
}

// Release gives the place back. If the peer is gone, the place stays taken: a put
// that was on its way may still arrive, and the window has lost a rank anyway.
func (l *WindowLink) Release() error {
	err := l.Settle(func(window.Request) bool { return true })
	l.shared.Drop()
	if l.Fate() != nil {
		return err
	}
	return errors.Join(err, l.c.give(l.place))
}

// Disowned implements Link.
func (l *WindowLink) Disowned() bool { return l.c.value(l.Slots[len(l.Slots)-1:]) != 0 }

// Disown implements Link.
func (l *WindowLink) Disown(ctx context.Context) bool {
	word := window.Signal{Slot: l.misfit.slot + l.c.flags(), Value: 1}
	return l.c.w.PutNotify(ctx, l.peer, 0, nil, word) == nil
}
