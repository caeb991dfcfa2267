package fan

import (
	"cmp"
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// waitForReads waits until a reader has read a block, or is gone.
func (f *fanOut) waitForReads(ctx context.Context) error {
	for _, p := range f.pipes {
		if f.awaits(p) {
			if err := p.Want(ctx, pipe.WantsWidth); err != nil && p.Fate() == nil {
				return err
			}
		}
	}
	return f.wait(ctx)
}

// waitForRoom waits until a reader that lacks the partial block has read or freed one, or
// is gone.
func (f *fanOut) waitForRoom(ctx context.Context) error {
	f.writing = true
	defer func() { f.writing = false }()
	return f.wait(ctx)
}

// wait waits until hasNews, or until the layer of the pipes has ended.
func (f *fanOut) wait(ctx context.Context) error {
	err := f.team.Wait(ctx, f.news)
	return cmp.Or(f.pipes[0].Layer.Err(), err)
}

// awaits reports whether a wait looks at what this reader writes.
func (f *fanOut) awaits(p *outPipe) bool {
	if f.writing {
		return p.lost == nil && p.has != f.partial
	}
	return p.lost == nil && p.unread.size > 0
}

// hasNews reports whether a reader that is awaited has written, or a rank is gone.
func (f *fanOut) hasNews() bool {
	if f.team.Health() != f.health || f.pipes[0].Layer.Err() != nil {
		return true
	}
	for _, p := range f.pipes {
		if f.awaits(p) && (p.Flag(pipe.CreditFlag) != p.Credit || p.Flag(pipe.EndFlag) != 0) {
			return true
		}
	}
	return false
}

// checkHealth has the readers leave whose ranks are gone.
func (f *fanOut) checkHealth(ctx context.Context) {
	now := f.team.Health()
	if now == f.health {
		return
	}
	f.health = now
	for _, p := range f.pipes {
		if fate := p.Fate(); fate != nil && p.lost == nil {
			f.lose(ctx, p, fate)
		}
	}
}

// lose has a reader leave. The next report has the error.
func (f *fanOut) lose(ctx context.Context, p *outPipe, why error) {
	p.lost = why
	_ = f.forget(ctx, p) // takeCredits repeats it
	f.gone = append(f.gone, p.Fail("Write", why))
}

// report returns the errors of the readers that left since the last report.
func (f *fanOut) report() error {
	gone := f.gone
	f.gone = nil
	return errors.Join(gone...)
}

// takeCredits learns which blocks were read. Blocks on their way to a reader that is gone
// count as read.
func (f *fanOut) takeCredits(ctx context.Context) error {
	f.checkHealth(ctx)
	for _, p := range f.pipes {
		if p.unread.size == 0 {
			continue
		}
		err := p.TakeCredit()
		if err == nil {
			err = f.removeRead(p)
		}
		if err == nil && p.Flag(pipe.EndFlag) != 0 {
			err = pipe.ErrReaderGone
		}
		if fate := p.Fate(); fate != nil {
			err = fate
		}
		if err != nil {
			if err := f.forget(ctx, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeRead removes from unread the blocks that the credit covers.
func (f *fanOut) removeRead(p *outPipe) error {
	n := uint32(p.Credit) - p.read
	p.read += n
	return f.removeFirst(p, n)
}

// forget removes all blocks from unread. It waits until those that leave from the stage
// have left, unless the reader's rank is gone.
func (f *fanOut) forget(ctx context.Context, p *outPipe) error {
	if err := p.Flush(ctx); err != nil && ctx.Err() != nil {
		return err
	}
	return f.removeFirst(p, uint32(p.unread.size))
}

// removeFirst removes the first n blocks from unread, or all if there are fewer.
func (f *fanOut) removeFirst(p *outPipe, n uint32) error {
	for ; n > 0 && p.unread.size > 0; n-- {
		if a := p.unread.pop(); a != 0 {
			if err := f.stage.delivered(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// A ring holds up to as many addresses as it was made for, first in first out.
type ring struct {
	list        []rmalloc.Addr
	first, size int
}

func (r *ring) push(a rmalloc.Addr) {
	r.list[(r.first+r.size)%len(r.list)] = a
	r.size++
}

func (r *ring) pop() rmalloc.Addr {
	a := r.list[r.first]
	r.first, r.size = (r.first+1)%len(r.list), r.size-1
	return a
}
