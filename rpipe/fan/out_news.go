package fan

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// pause waits for news of readers that blocks are on their way to.
func (f *fanOut) pause(ctx context.Context) error {
	for _, m := range f.arms {
		if m.lost == nil && m.away.size > 0 {
			if err := m.w.Want(ctx, pipe.WantsWidth); err != nil && m.w.Fate() == nil {
				return err
			}
		}
	}
	return f.wait(ctx, f.moved)
}

func (f *fanOut) hasMoved() bool {
	if f.team.Health() != f.seen {
		return true
	}
	for _, m := range f.arms {
		if m.lost == nil && m.away.size > 0 && (m.w.Flag(pipe.CreditFlag) != m.w.Credit || m.w.Flag(pipe.EndFlag) != 0) {
			return true
		}
	}
	return false
}

// hasRoomier reports whether a reader which lacks the block has read or freed some, or
// is gone.
func (f *fanOut) hasRoomier() bool {
	if f.team.Health() != f.heard {
		return true
	}
	for _, m := range f.arms {
		if m.lost == nil && m.has != f.partial && (m.w.Flag(pipe.CreditFlag) != m.w.Credit || m.w.Flag(pipe.EndFlag) != 0) {
			return true
		}
	}
	return false
}

// wait waits until ready, which looks at what readers say.
func (f *fanOut) wait(ctx context.Context, ready func() bool) error {
	if f.over == nil {
		return f.team.Wait(ctx, ready)
	}
	u := f.over.Enlist()
	defer f.over.Dismiss(u)
	for _, m := range f.arms {
		if m.lost == nil {
			flags := m.w.Link.(*pipe.WindowLink).Slots
			u.Slots = append(u.Slots, flags[pipe.CreditFlag], flags[pipe.EndFlag])
		}
	}
	for {
		if done, err := f.over.Sleep(ctx, u, ready); done || err != nil {
			return err
		}
	}
}

// takeIn learns what was read, and who is gone.
func (f *fanOut) takeIn(ctx context.Context) error {
	f.seen = f.team.Health()
	for _, m := range f.arms {
		if m.away.size == 0 {
			continue
		}
		err := m.w.TakeCredit()
		if err == nil {
			err = f.arrivedAt(m, uint32(m.w.Credit)-m.read)
		}
		if err == nil && m.w.Flag(pipe.EndFlag) != 0 {
			err = pipe.ErrReaderGone
		}
		if fate := m.w.Fate(); fate != nil {
			err = fate
		}
		if err != nil {
			if err := f.forget(ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// arrivedAt notes that a reader has read n more blocks.
func (f *fanOut) arrivedAt(m *arm, n uint32) error {
	m.read += n
	for ; n > 0 && m.away.size > 0; n-- {
		if a := m.away.pop(); a != 0 {
			if err := f.stage.Arrived(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// forget has nothing be on its way to a reader that reads no more: what has left
// the stage is waited for where there is someone to take it.
func (f *fanOut) forget(ctx context.Context, m *arm) error {
	if err := m.w.Flush(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	for m.away.size > 0 {
		if a := m.away.pop(); a != 0 {
			if err := f.stage.Arrived(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// buryDead takes readers out whose ranks are gone, before they are written to.
func (f *fanOut) buryDead(ctx context.Context) (out []error) {
	now := f.team.Health()
	if now == f.heard {
		return nil
	}
	f.heard = now
	for _, m := range f.arms {
		if fate := m.w.Fate(); fate != nil && m.lost == nil {
			out = append(out, f.lose(ctx, m, fate))
		}
	}
	return out
}

// lose takes a reader out and returns what Write tells of it.
func (f *fanOut) lose(ctx context.Context, m *arm, why error) error {
	m.lost = why
	_ = f.forget(ctx, m) // or when its memory is needed
	return m.w.End.Fail("Write", why)
}

var errNobodyLeft = fmt.Errorf("%w: no reader is left", rpipe.ErrClosed)
