package fan

import (
	"context"
	"errors"
	"io"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// An inPipe is the pipe of one writer.
type inPipe struct {
	*pipe.Reader
	ended   bool
	blocked bool   // its next block, or its end, is taken from the ring and not handed out
	silent  bool   // its writer's rank did not answer in time
	failed  error  // of its writer's rank; blocks that have arrived are read first
	wants   uint64 // how often the writer has waited, as this end saw it last
}

// takeFromPipe returns the next block of a pipe, if there is one and room for it. It does
// not wait for a Free, nor for a rank that does not answer.
func (f *fanIn) takeFromPipe(ctx context.Context, i int) (arrival, bool, error) {
	f.looks.Add(1)
	p, g := &f.pipes[i], f.group(i)
	t, err := p.Take(ctx, p.failed != nil) // blocks that have arrived count
	if err != nil && f.closed.Load() {
		return none, false, pipe.ErrSelfClosed // Close may have freed the pipe's memory
	}
	g.taken += t.Count + t.Wants - p.wants // the word counts these, too
	p.wants = t.Wants
	f.setBlocked(i, t.Blocked)
	switch {
	case t.OK:
		return arrival{i, t.Addr, t.Mem}, true, nil
	case errors.Is(err, io.EOF):
		f.endPipe(i, nil)
		return none, false, nil
	case err != nil && ctx.Err() != nil && p.Usable() == nil:
		return none, false, err
	case err == nil:
		err = p.failed
	}
	if err != nil {
		f.endPipe(i, err)
	}
	return arrival{from: i}, false, err
}

// setBlocked notes whether a pipe is blocked.
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

// endPipe counts a pipe as ended. A writer whose end did not arrive may have counted
// blocks that no read takes.
func (f *fanIn) endPipe(i int, err error) {
	p := &f.pipes[i]
	if !p.AtEnd() {
		f.group(i).inexact = true
	}
	f.setBlocked(i, false)
	p.ended = true
	f.open.Add(-1)
	if f.onEnd != nil {
		f.onEnd(i, err)
	}
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
