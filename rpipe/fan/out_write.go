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
	team    *team.Team
	id      *pipe.End // owns the blocks
	stage   *stage
	pipes   []*outPipe
	partial rmalloc.Addr // a block that some readers may have, or 0
	writing bool         // wait is for room for partial, not for reads
	health  uint64       // epoch as of the last checkHealth
	news    func() bool  // hasNews, made once
	gone    []error      // of readers that were lost since the last report
}

// An outPipe is the pipe to one reader.
type outPipe struct {
	*pipe.Writer
	written uint64       // blocks
	base    uint64       // its block k, from 0, has number base+k or more in the stage
	has     rmalloc.Addr // fanOut.partial, if this reader has it
	lost    error        // why this reader left the fan-out
	settled bool         // no block leaves to it from the stage any more
}

// newFanOut makes a fan-out without pipes, and the memory in which blocks are filled.
func newFanOut(ctx context.Context, t *runtime.Team, o *pipe.Options) (*fanOut, error) {
	team := team.Of(t)
	f := &fanOut{team: team, id: &pipe.End{Rank: t.Rank(), Peer: -1, Name: o.Name}, health: team.Health() - 1}
	f.news = f.hasNews
	var err error
	f.stage, err = newStage(ctx, team, o)
	return f, err
}

// add adds the pipe of a new end, to the next reader.
func (f *fanOut) add(p *pipe.End) error {
	w, err := pipe.NewWriterEnd(p)
	if err != nil {
		return err
	}
	f.stage.share(p)
	f.pipes = append(f.pipes, &outPipe{Writer: w})
	return nil
}

// left returns the number of readers that did not leave.
func (f *fanOut) left() (n int) {
	for _, p := range f.pipes {
		if p.lost == nil {
			n++
		}
	}
	return n
}

// alloc allocates a block of n bytes.
func (f *fanOut) alloc(ctx context.Context, n int) (rmalloc.Addr, error) {
	for {
		if f.id.Closed.Load() {
			return 0, pipe.ErrSelfClosed
		}
		if err := f.takeCredits(ctx); err != nil {
			return 0, err
		}
		a, err := f.stage.heap.Alloc(n)
		switch {
		case err == nil:
			return a, nil
		case errors.Is(err, rpipe.ErrTooLarge):
			return 0, fmt.Errorf("%w; raise WithHeap", err)
		case !errors.Is(err, rmalloc.ErrFull):
			return 0, err
		}
		if err := f.waitForReads(ctx); err != nil {
			return 0, fmt.Errorf("%w (while waiting for %d bytes, until readers have read)", err, n)
		}
	}
}

// write hands a block to all readers: at once to those that have room, to the others
// as they get room.
func (f *fanOut) write(ctx context.Context, a rmalloc.Addr) error {
	offset, n, err := f.stage.heap.Range(a)
	switch {
	case f.id.Closed.Load():
		err = pipe.ErrSelfClosed
	case err == nil && f.partial != 0 && f.partial != a:
		err = ErrUnfinished
	}
	if err != nil {
		return f.id.Fail("Write", err)
	}
	f.partial = a
	for first := true; ; first = false {
		f.checkHealth(ctx)
		lacking, err := f.offer(ctx, a, offset, n, !first)
		if err == nil && lacking > 0 && !first {
			err = f.waitForRoom(ctx)
		}
		if err != nil {
			return errors.Join(f.report(), f.id.Fail("Write", fmt.Errorf("%w (while %d readers have no room)", err, lacking)))
		}
		if lacking == 0 {
			break
		}
	}
	if f.left() == 0 {
		f.gone = append(f.gone, f.id.Fail("Write", errNoReader))
	}
	return errors.Join(f.report(), f.release(a, n))
}

var errNoReader = fmt.Errorf("%w: no reader is left", rpipe.ErrClosed)

// offer writes a block to the readers that lack it and have room, and returns how many
// readers still lack it. With tell it tells the others that the writer waits, before it
// looks at their room.
func (f *fanOut) offer(ctx context.Context, a rmalloc.Addr, offset, n int, tell bool) (lacking int, err error) {
	for _, p := range f.pipes {
		if p.lost != nil || p.has == a {
			continue
		}
		err := f.deliver(ctx, p, a, offset, n, tell)
		switch {
		case errors.Is(err, rmalloc.ErrFull):
			lacking++
		case err == nil:
		case ctx.Err() != nil && p.Usable() == nil && p.Fate() == nil:
			return lacking + 1, err
		default:
			f.lose(ctx, p, err)
		}
	}
	return lacking, nil
}

// deliver writes a block to one reader. ErrFull: the reader has no room.
func (f *fanOut) deliver(ctx context.Context, p *outPipe, a rmalloc.Addr, offset, n int, tell bool) error {
	to, err := p.Reserve(ctx, n, tell)
	if err != nil {
		return err
	}
	if p.Direct {
		p.Fill(to, f.stage.Mem[offset:][:n])
	}
	if p.InFlight() == 0 {
		p.base = f.stage.next() - p.written
	}
	if err := p.WriteFrom(ctx, to, offset); err != nil {
		return errors.Join(err, p.Free(to))
	}
	p.has = a
	p.written++
	return nil
}

// release ends a write: the readers own the block.
func (f *fanOut) release(a rmalloc.Addr, n int) error {
	leaves := false
	for _, p := range f.pipes {
		leaves = leaves || p.has == a && !p.Direct
		p.has = 0
	}
	f.partial = 0
	return f.stage.release(a, n, leaves)
}

// free frees a block that the caller owns.
func (f *fanOut) free(a rmalloc.Addr) error {
	_, n, err := f.stage.heap.Range(a)
	switch {
	case err != nil:
		return err
	case f.partial == a:
		return f.release(a, n)
	}
	return f.stage.heap.Free(a)
}
