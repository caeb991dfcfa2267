package fan

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// A fanOut is an Out without its element type.
type fanOut struct {
	id      *pipe.End // owns the blocks
	team    *team.Team
	over    *rpipe.WindowPool // nil: the pipes lie on the fabric
	stage   *pipe.FanStage
	arms    []*arm
	partial rmalloc.Addr // a block that some readers have, or 0
	seen    uint64       // health, as of the last wait
	heard   uint64       // health, as of the last write
	moved   func() bool  // hasMoved, made once
	roomier func() bool  // hasRoomier, made once
}

// An arm is the pipe to one reader.
type arm struct {
	w    *pipe.Writer
	away ring         // blocks that leave from the stage, and are not known to be read
	read uint32       // how many blocks were read, as far as they were taken from away
	has  rmalloc.Addr // the block of fanOut.partial, if it was written here
	lost error        // why the reader is out
}

func newFanOut(ctx context.Context, t *runtime.Team, o *pipe.Options) (*fanOut, error) {
	team := team.Of(t)
	f := &fanOut{id: &pipe.End{Rank: t.Rank(), Peer: -1, Name: o.Name}, team: team, over: o.Pool, heard: team.Health() - 1}
	f.moved, f.roomier = f.hasMoved, f.hasRoomier
	var err error
	f.stage, err = pipe.NewFanStage(ctx, team, o)
	return f, err
}

// add takes in the next reader.
func (f *fanOut) add(w *pipe.Writer) {
	f.stage.Share(w.Link)
	f.arms = append(f.arms, &arm{w: w, away: ring{list: make([]rmalloc.Addr, w.Spec.Width)}})
}

func (f *fanOut) left() (n int) {
	for _, m := range f.arms {
		if m.lost == nil {
			n++
		}
	}
	return n
}

// alloc takes a block of n bytes.
func (f *fanOut) alloc(ctx context.Context, n int) (rmalloc.Addr, error) {
	for {
		if f.id.Closed.Load() {
			return 0, pipe.ErrSelfClosed
		}
		if err := f.takeIn(ctx); err != nil {
			return 0, err
		}
		a, err := f.stage.Heap.Alloc(n)
		switch {
		case err == nil:
			return a, nil
		case errors.Is(err, rpipe.ErrTooLarge):
			return 0, fmt.Errorf("%w; raise WithHeap", err)
		case !errors.Is(err, rmalloc.ErrFull):
			return 0, err
		}
		if err := f.pause(ctx); err != nil {
			return 0, fmt.Errorf("%w (while waiting for %d bytes, until readers have read)", err, n)
		}
	}
}

// write hands a block to all readers: at once to those that have room, to the others
// as they get some.
func (f *fanOut) write(ctx context.Context, a rmalloc.Addr) error {
	offset, n, err := f.stage.Heap.Range(a)
	switch {
	case f.id.Closed.Load():
		err = pipe.ErrSelfClosed
	case err == nil && f.partial != 0 && f.partial != a:
		err = ErrUnfinished
	}
	if err != nil {
		return f.fail("Write", err)
	}
	f.partial = a
	out := f.buryDead(ctx)
	for first := true; ; first = false {
		lacking, err := f.offer(ctx, a, offset, n, !first, &out)
		if err == nil && lacking > 0 && !first {
			err = f.wait(ctx, f.roomier)
		}
		if err != nil {
			return errors.Join(errors.Join(out...), f.fail("Write", fmt.Errorf("%w (while %d readers have no room)", err, lacking)))
		}
		if lacking == 0 {
			break
		}
		out = append(out, f.buryDead(ctx)...)
	}
	if f.left() == 0 {
		out = append(out, f.fail("Write", errNobodyLeft))
	}
	if err := f.settle(a, n); err != nil || out != nil {
		return errors.Join(errors.Join(out...), err)
	}
	return nil
}

// offer writes a block to those readers that lack it and have room. With ask the
// others are told that it waits for them, ahead of the look at what room they have.
// It returns how many lack it still.
func (f *fanOut) offer(ctx context.Context, a rmalloc.Addr, offset, n int, ask bool, out *[]error) (lacking int, err error) {
	for _, m := range f.arms {
		if m.lost != nil || m.has == a {
			continue
		}
		err := f.deliver(ctx, m, a, offset, n, ask)
		switch {
		case errors.Is(err, rmalloc.ErrFull):
			lacking++
		case err == nil:
		case ctx.Err() != nil && m.w.Usable() == nil && m.w.Fate() == nil:
			return lacking + 1, err
		default:
			*out = append(*out, f.lose(ctx, m, err))
		}
	}
	return lacking, nil
}

// deliver writes a block to one reader, or is ErrFull.
func (f *fanOut) deliver(ctx context.Context, m *arm, a rmalloc.Addr, offset, n int, ask bool) error {
	w := m.w
	to, err := w.Reserve(ctx, n, ask)
	if err != nil {
		return err
	}
	if w.Direct {
		copy(w.Mem[to.Offset():], f.stage.Bytes()[offset:][:n])
	}
	if err := w.WriteFrom(ctx, to, offset); err != nil {
		return errors.Join(err, w.Free(to))
	}
	if m.has = a; w.Direct || n == 0 {
		a = 0
	} else {
		f.stage.Leaves(a)
	}
	// The pipe's width has let it pass by the credit that was taken in: here, too.
	err = f.arrivedAt(m, uint32(w.Credit)-m.read)
	m.away.push(a)
	return err
}

// settle ends a write: the block is the readers'.
func (f *fanOut) settle(a rmalloc.Addr, n int) error {
	f.partial = 0
	for _, m := range f.arms {
		m.has = 0
	}
	return f.stage.Settle(a, n)
}

// free gives up a block.
func (f *fanOut) free(a rmalloc.Addr) error {
	_, n, err := f.stage.Heap.Range(a)
	switch {
	case err != nil:
		return err
	case f.partial == a:
		return f.settle(a, n)
	}
	return f.stage.Settle(a, n)
}
