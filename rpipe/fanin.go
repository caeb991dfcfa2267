package rpipe

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// A FanIn is one handle on the reading ends of many pipes. Their writers are
// ordinary ones: OpenWriter with the same options.
//
//	writers 0 .. 63     pipes --> [word 0]
//	writers 64 .. 127   pipes --> [word 1]    Read: which words have moved?
//	...                              ...
//
// A writer adds 1 to the word of its group of 64 pipes behind each block, which
// is one more work request in its queue (none on mapped ranks); the reader looks
// at pipes of those groups only whose word differs from what it has taken. So what
// a Read costs does not depend on how many pipes are idle, but for one word in 64
// of them.
//
// Read, TryRead and All are called by one goroutine at a time; Free, Close and
// Stats by any.
type FanIn[T any] struct {
	in      *fanIn
	readers []*Reader[T]
}

// OpenFanIn opens this rank's ends of pipes from other ranks of t, one for each
// element of writers. A rank that is there several times is at the other end of
// several pipes: its k-th OpenWriter of the name meets its k-th mention. It
// connects to nobody yet. Each pipe has a heap of its own: with thousands of them,
// give WithHeap, WithWidth and WithBlocks. With a heap of 512 bytes, width 4 and 4
// blocks a pipe takes 0.9 KiB at the reader and 0.4 KiB at the writer, which has 0.5
// KiB more for its stage where the reader is not mapped: 10,000 pipes are 9 MiB of
// the reader's heap. When it fails, for want of memory for one of them, say, none was
// opened.
//
// WithCarrier has all pipes run over a window, and the summary be notification slots
// of it. Then the death of any rank of the carrier's team ends all of it, as waits on
// windows do: what has arrived is read, and from then on Read fails with position -1.
// Kind: local.
func OpenFanIn[T any](ctx context.Context, t *runtime.Team, writers []int, opts ...Option) (*FanIn[T], error) {
	ctx = wait.Context(ctx)
	var o opening
	f, err := addFanIn[T](ctx, &o, t, writers, opts)
	if err != nil {
		return nil, err
	}
	if err := o.open(ctx); err != nil {
		f.in.tally.drop(false)
		return nil, fmt.Errorf("OpenFanIn: %w", err)
	}
	f.opened()
	return f, nil
}

// addFanIn gathers the ends of a fan-in. When they are opened, it is.
func addFanIn[T any](ctx context.Context, o *opening, t *runtime.Team, writers []int, opts []Option) (*FanIn[T], error) {
	if t == nil || len(writers) == 0 {
		return nil, fmt.Errorf("OpenFanIn of %d writers: %w: give a team and at least one of its ranks", len(writers), runtime.ErrRange)
	}
	common, err := collect(opts)
	if err != nil {
		return nil, fmt.Errorf("OpenFanIn: %w", err)
	}
	y, err := newTally(ctx, t, len(writers), common.carrier)
	if err != nil {
		return nil, fmt.Errorf("OpenFanIn: %w", err)
	}
	f := &FanIn[T]{in: newFanIn(y, len(writers), common.carrier), readers: make([]*Reader[T], 0, len(writers))}
	for i, writer := range writers {
		member := func(o *options) error { o.tally, o.group = y, i/groupSize; return nil }
		r, err := addReader[T](ctx, o, t, writer, append(opts[:len(opts):len(opts)], member))
		if err != nil {
			y.drop(false)
			return nil, fmt.Errorf("OpenFanIn: %w", err)
		}
		f.readers = append(f.readers, r)
	}
	return f, nil
}

// opened takes in the ends that were opened.
func (f *FanIn[T]) opened() {
	for _, r := range f.readers {
		f.in.tally.hold()
		f.in.add(r.end)
	}
}

// Read returns the next block of any of the pipes, waiting for one, and the
// position in OpenFanIn's writers of the rank that wrote it. Blocks of one writer
// come in order. Among writers it goes in turn, so that each gets its blocks read,
// however much the others write. io.EOF: all of them have closed their pipes, all was
// read, and the writers know that, as from Reader.Read.
//
// A pull pipe whose blocks here were not freed and leave no room for its next one is
// passed over until a Free: the others go on.
//
// An error with a position concerns that pipe only: its writer's rank is dead, or
// the writer opened it with other options. Read returns the error after all blocks
// that had arrived by that pipe. From then on the pipe counts as closed, and the
// next Read goes on with the rest. An error with position -1 concerns the call, such
// as the end of ctx. Kind: as Reader.Read's.
func (f *FanIn[T]) Read(ctx context.Context) (b Block[T], from int, err error) {
	ctx = wait.Context(ctx)
	got, err := f.in.read(ctx)
	if err != nil {
		return b, got.from, f.failed("Read", got.from, err)
	}
	return f.readers[got.from].block(got.addr, got.mem), got.from, nil
}

// TryRead reads the next block as Read does, without waiting for it. ErrWouldBlock, with
// position -1: no block has arrived for which there is room. Kind: as Read's.
func (f *FanIn[T]) TryRead() (b Block[T], from int, err error) {
	got, ok, err := f.in.poll()
	switch {
	case err != nil:
		return b, got.from, f.failed("TryRead", got.from, err)
	case !ok:
		return b, -1, ErrWouldBlock
	}
	return f.readers[got.from].block(got.addr, got.mem), got.from, nil
}

func (f *FanIn[T]) failed(op string, from int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF):
		return io.EOF
	case from >= 0:
		return f.in.ends[from].fail(op, err)
	}
	return f.in.fail(op, err)
}

// An Arrival is a block with the position of its writer.
type Arrival[T any] struct {
	Block[T]
	From int
}

// All reads until all pipes have ended, which ends the loop without an error:
//
//	for b, err := range f.All(ctx) { ... }
//
// An error of one pipe does not end the loop: its Arrival says whose it is. Any
// other does. Kind: as Read's.
func (f *FanIn[T]) All(ctx context.Context) iter.Seq2[Arrival[T], error] {
	return func(yield func(Arrival[T], error) bool) {
		for {
			b, from, err := f.Read(ctx)
			if errors.Is(err, io.EOF) || !yield(Arrival[T]{b, from}, err) || err != nil && from < 0 {
				return
			}
		}
	}
}

// Free lets a block's writer have its memory again. ErrStale: it was freed before.
// Kind: one-sided; it waits for nothing.
func (f *FanIn[T]) Free(b Block[T]) error {
	if i := f.in.find(b.owner); i >= 0 {
		return f.readers[i].Free(b)
	}
	return f.in.fail("Free", ErrForeign)
}

// Stats returns what the readers did, all together. Kind: local.
func (f *FanIn[T]) Stats() FanInStats { return f.in.stats() }

// Close ends all pipes at this end, as Reader.Close does. The second call does
// nothing. Kind: one-sided.
func (f *FanIn[T]) Close(ctx context.Context) error { return f.in.close(wait.Context(ctx)) }

// FanInStats tell what a fan-in did.
type FanInStats struct {
	ReaderStats        // of all pipes
	Open        int    // pipes that have not ended
	Looks       uint64 // at pipes: at those of groups with something new
}

// arrival is what came out of a pipe.
type arrival struct {
	from int
	addr rmalloc.Addr
	mem  []byte
}
