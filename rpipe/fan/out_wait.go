package fan

import (
	"cmp"
	"context"
	"errors"

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

// wait waits until hasNews, or until the layer of the pipes has ended. It looks again after
// pauses: a ring may overtake the flag of a reader.
func (f *fanOut) wait(ctx context.Context) error {
	err := f.team.WaitStored(ctx, f.news)
	return cmp.Or(f.pipes[0].Layer.Err(), err)
}

// awaits reports whether a wait looks at what this reader writes.
func (f *fanOut) awaits(p *outPipe) bool {
	if f.writing {
		return p.lost == nil && p.has != f.partial
	}
	return p.lost == nil && p.reads()
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
		if fate := p.Presence(); fate != nil && p.lost == nil {
			f.lose(ctx, p, fate)
		}
	}
}

// lose has a reader leave. The next report has the error.
func (f *fanOut) lose(ctx context.Context, p *outPipe, why error) {
	p.lost = why
	_ = p.settle(ctx) // takeCredits repeats it
	f.gone = append(f.gone, p.Fail("Write", why))
}

// report returns the errors of the readers that left since the last report.
func (f *fanOut) report() error {
	gone := f.gone
	f.gone = nil
	return errors.Join(gone...)
}

// takeCredits learns which blocks were read, and frees them. Blocks on their way to a reader
// that is gone count as read.
func (f *fanOut) takeCredits(ctx context.Context) error {
	f.checkHealth(ctx)
	read := f.stage.next()
	for _, p := range f.pipes {
		if !p.reads() {
			continue
		}
		err := p.TakeCredit()
		if err == nil && p.Flag(pipe.EndFlag) != 0 {
			err = pipe.ErrReaderGone
		}
		if p.lost != nil || err != nil || p.Fate() != nil {
			if err := p.settle(ctx); err != nil {
				return err
			}
		} else if p.reads() {
			read = min(read, p.base+p.written-uint64(p.InFlight()))
		}
	}
	return f.stage.read(max(read, f.stage.first))
}

// reads reports whether the reader may read blocks from the stage that it has not read yet, as
// far as this rank knows.
func (p *outPipe) reads() bool { return !p.Direct && !p.settled && p.InFlight() > 0 }

// settle waits until no block leaves to this reader any more, unless the reader's rank is gone. None
// has left to a reader that is not connected.
func (p *outPipe) settle(ctx context.Context) error {
	if p.Up {
		if err := p.Flush(ctx); err != nil && ctx.Err() != nil {
			return err
		}
	}
	p.settled = true
	return nil
}
