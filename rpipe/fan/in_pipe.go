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
	ended  bool
	due    bool   // in the fan-in's now or next
	silent bool   // the rank of the writer did not respond in time
	gone   bool   // the rank of the writer is gone, or has returned without closing the writer
	turn   uint32 // fanIn.turn at the last look
}

// ending reports whether a read returns the writer's fate now. A block that waits for memory of
// this end comes first if its bytes can be fetched: the writer's rank has only returned.
func (p *inPipe) ending() bool { return p.gone && (!p.Holds() || p.Fate() != nil) }

// hasNews reports whether a read must look at the pipe.
func (p *inPipe) hasNews() bool { return p.HasArrived() || p.ending() }

// look returns the next block of pipe i, if one has arrived and this rank has memory for it.
// It waits neither for a Free nor for a rank that does not respond. It keeps the pipe due if a
// later look may find something.
func (f *fanIn) look(ctx context.Context, i int) (got arrival, ok bool, err error) {
	p := &f.pipes[i]
	p.due, p.turn = false, f.turn
	switch {
	case p.ended:
		return none, false, nil
	case p.hasNews():
		got, ok, err = f.readPipe(ctx, i)
	case !p.Joined.Load():
		f.probed = min(f.probed, i) // the writer may have found that the ends differ
	}
	if !p.ended && (p.Holds() || p.hasNews()) {
		f.enqueue(i)
	}
	return got, ok, err
}

// readPipe reads from pipe i, and ends the pipe behind its last block.
func (f *fanIn) readPipe(ctx context.Context, i int) (got arrival, ok bool, err error) {
	f.looks.Add(1)
	p := &f.pipes[i]
	got.from = i
	got.addr, got.mem, ok, err = p.Poll(ctx)
	p.Serve() // the writer may wait for freed blocks
	if err == nil && !ok && p.ending() {
		err = p.Presence()
	}
	switch {
	case err == nil:
		return got, ok, nil
	case f.closed.Load():
		return none, false, pipe.ErrSelfClosed // Close may have freed the pipe's memory
	case errors.Is(err, io.EOF) && !f.ends:
		got, err = none, nil
	case ctx.Err() != nil && p.Usable() == nil && p.Presence() == nil && !errors.Is(err, io.EOF):
		return none, false, err
	}
	p.ended = true
	f.open.Add(-1)
	return got, false, err
}

// probe looks for the writer of the next pipe. A writer that opens later changes its word. A
// writer that has closed already, or that differs, is found by probe alone.
func (f *fanIn) probe(ctx context.Context) error {
	i := f.probed
	f.probed++
	p := &f.pipes[i]
	if p.ended {
		return nil
	}
	deserted, err := p.Look(ctx) // blocks of other pipes do not wait for a rank that does not respond
	p.silent = errors.Is(err, rpipe.ErrWouldBlock)
	switch {
	case deserted || p.Usable() != nil:
		f.enqueue(i) // the end comes next, or the error
	case err != nil && ctx.Err() != nil:
		f.probed = i
		return err
	case p.silent:
		f.probed = i
	}
	return nil
}
