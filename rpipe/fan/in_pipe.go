package fan

import (
	"context"
	"errors"
	"io"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// An inPipe is the reading end of one pipe of a fan-in. The goroutine that holds the fan-in's
// reading changes the fields.
type inPipe struct {
	*pipe.Reader
	ended   bool
	blocked bool   // this end has taken the flag of a block, or of the end, and not returned it
	silent  bool   // the rank of the writer did not answer in time
	failed  error  // of the rank of the writer; this end returns it behind the blocks that have arrived
	wants   uint64 // number of the writer's waits that this end has counted in its group
}

// failing reports whether a read returns the pipe's error now. A block that waits for memory of
// this end comes first if its bytes can be fetched: the writer's rank has only returned.
func (p *inPipe) failing() bool {
	return p.failed != nil && (!p.blocked || p.Fate() != nil)
}

// takeFromPipe returns the next block of pipe i, if one has arrived and this rank has memory
// for it. It waits neither for a Free nor for a rank that does not answer. It adds the flags
// that it took to the group's count, which the group compares with the summary.
func (f *fanIn) takeFromPipe(ctx context.Context, i int) (arrival, bool, error) {
	f.looks.Add(1)
	p, g := &f.pipes[i], f.group(i)
	t, err := p.Take(ctx, p.failed != nil) // blocks that have arrived count
	if err != nil && f.closed.Load() {
		return none, false, pipe.ErrSelfClosed // Close may have freed the pipe's memory
	}
	g.taken += (t.Count + t.Wants - p.wants) << pipe.Field(i) // the summary counts the waits of the writer, too
	p.wants = t.Wants
	if int64(g.word-g.taken) < 0 {
		f.loadWord(g)
	}
	f.setBlocked(i, t.Blocked)
	switch {
	case t.OK:
		return arrival{i, t.Addr, t.Mem}, true, nil
	case errors.Is(err, io.EOF):
		f.endPipe(i)
		if f.ends {
			return arrival{from: i}, false, io.EOF
		}
		return none, false, nil
	case err != nil && ctx.Err() != nil && p.Usable() == nil:
		return none, false, err
	case err == nil && p.failing():
		err = p.failed
	}
	if err != nil {
		f.endPipe(i)
	}
	return arrival{from: i}, false, err
}

// setBlocked notes whether pipe i is blocked, and keeps its group's number of blocked pipes.
func (f *fanIn) setBlocked(i int, blocked bool) {
	p, g := &f.pipes[i], f.group(i)
	switch {
	case blocked && !p.blocked:
		g.blocked++
	case !blocked && p.blocked:
		g.blocked--
	}
	p.blocked = blocked
}

// endPipe counts pipe i as ended, by an error or by its writer's FIN. Without the FIN the writer
// may have counted blocks in the summary that no read takes: the count is inexact then.
func (f *fanIn) endPipe(i int) {
	p := &f.pipes[i]
	if !p.AtEnd() {
		f.group(i).inexact = true
	}
	f.setBlocked(i, false)
	p.ended = true
	f.open.Add(-1)
}

// fail has a pipe end with an error behind the blocks that have arrived.
func (f *fanIn) fail(i int, err error) {
	f.pipes[i].failed = err
	f.group(i).inexact = true
}

// probe looks for the writer of the next pipe. A writer that opens later adds to the
// summary. A writer that has closed already, or that differs, is found by probe alone.
func (f *fanIn) probe(ctx context.Context) error {
	i := f.probed
	f.probed++
	p := &f.pipes[i]
	if p.ended {
		return nil
	}
	deserted, err := p.Look(ctx) // blocks of other pipes do not wait for a rank that does not answer
	p.silent = errors.Is(err, rpipe.ErrWouldBlock)
	switch {
	case deserted:
		f.setBlocked(i, true) // the end comes next
	case err != nil && p.Usable() != nil:
		f.fail(i, err)
	case err != nil && ctx.Err() != nil:
		f.probed = i
		return err
	case p.silent:
		f.probed = i
	}
	return nil
}
