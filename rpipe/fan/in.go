package fan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// An In reads from many pipes through one handle. The writers call rpipe.OpenWriter with
// the same options.
//
//	writer 0    pipe --> [word 0]
//	writer 1    pipe --> [word 1]    Read: which words have changed?
//	...                    ...
//
// A writer stores a new number in its word behind each block. That is one more write in its
// queue (a store on mapped ranks). The reader looks only at pipes whose words have changed, in
// turn. An idle pipe costs a load of its word. Reads load 16 to 32 words for each block.
//
// One goroutine at a time calls Read, TryRead and All. Any goroutine may call Free,
// Close and Stats.
type In[T any] struct{ in *fanIn }

// OpenIn opens this rank's ends of pipes from other ranks of t, one for each element of
// writers: all of them or none. A rank that writers has several times writes several
// pipes: its k-th rpipe.OpenWriter of the name pairs with its k-th element.
//
// Each pipe has a heap of its own: with thousands of pipes, give WithHeap, WithWidth and
// WithBlocks. A pipe with a heap of 512 bytes, width 4 and 4 blocks takes 0.9 KiB at the reader and
// 0.4 KiB at the writer. The writer's stage takes 0.5 KiB more where the reader is not mapped.
// 10,000 such pipes take 9 MiB of the reader's heap.
//
// rpipe.WithWindow has all pipes run over a window. There Read looks at the pipes themselves.
// When the window closes, Read fails with position -1.
//
// ErrTeam: t is nil. ErrRange: writers is empty or has a rank that t has not, or an option is out
// of its range. ErrType: elements of T hold pointers. runtime.ErrExhausted: the heap is
// too small. Kind: local; OpenIn connects to no writer.
func OpenIn[T any](ctx context.Context, t *runtime.Team, writers []int, opts ...rpipe.Option) (*In[T], error) {
	ctx = wait.Context(ctx)
	var o pipe.Opening
	f, err := gatherIn[T](ctx, &o, t, writers, opts)
	if err != nil {
		return nil, err
	}
	if err := o.Open(ctx); err != nil {
		f.in.summary.GiveUp()
		return nil, fmt.Errorf("OpenIn: %w", err)
	}
	return f, nil
}

// checkPeers returns why there is no fan-in from the ranks of t that peers lists, and no fan-out to them.
func checkPeers(t *runtime.Team, peers []int) error {
	switch {
	case t == nil:
		return runtime.ErrTeam
	case len(peers) == 0:
		return fmt.Errorf("%w: give at least one rank", runtime.ErrRange)
	}
	return nil
}

// gatherIn makes a fan-in, and adds its ends to o. The caller opens o.
func gatherIn[T any](ctx context.Context, o *pipe.Opening, t *runtime.Team, writers []int, opts []rpipe.Option) (*In[T], error) {
	if err := checkPeers(t, writers); err != nil {
		return nil, fmt.Errorf("OpenIn of %d writers: %w", len(writers), err)
	}
	common, err := pipe.Collect(opts)
	if err != nil {
		return nil, fmt.Errorf("OpenIn: %w", err)
	}
	summary, err := pipe.NewSummary(ctx, t, len(writers), &common)
	if err != nil {
		return nil, fmt.Errorf("OpenIn: %w", err)
	}
	f := newFanIn(summary, common.Name, len(writers))
	for i, writer := range writers {
		grouped := func(o *pipe.Options) error { o.Summary, o.Place = summary, i; return nil }
		pipe.Add[T](o, "OpenReader", t, writer, false, append(opts[:len(opts):len(opts)], grouped),
			func(p *pipe.End) (err error) { f.pipes[i].Reader, err = pipe.NewReaderEnd(p); return err })
	}
	return &In[T]{f}, nil
}

// Read waits for a block of any of the pipes, and returns it with its writer's position
// in OpenIn's writers. The reader owns the block until Free. Blocks of one writer come in
// order. Read takes the writers in turn: no writer keeps it from the blocks of another.
//
// Read passes over a pull pipe whose unfreed blocks leave no room for its next one. It
// returns blocks of the remaining pipes until a Free makes room.
//
// io.EOF: all writers have closed, and this rank has read all blocks. The writers learn of
// it even if Read found no room in the queue to them. An error with a position concerns
// that pipe only: its writer's rank is dead or has returned without closing it, or the writer
// opened it with other options.
// Read returns the error after all blocks that had arrived by that pipe. From then on the
// pipe counts as ended, and the next Read goes on with the rest. An error with position -1
// concerns the call, such as the end of ctx. Kind: as rpipe.Reader.Read's.
func (f *In[T]) Read(ctx context.Context) (b rpipe.Block[T], from int, err error) {
	ctx = wait.Context(ctx)
	got, err := f.in.read(ctx)
	if err != nil {
		return b, got.from, f.failed("Read", got.from, err)
	}
	return f.block(got), got.from, nil
}

// TryRead reads the next block as Read does, without waiting for it. ErrWouldBlock, with
// position -1: no block has arrived for which there is room. Kind: as Read's.
func (f *In[T]) TryRead() (b rpipe.Block[T], from int, err error) {
	got, ok, err := f.in.poll()
	switch {
	case err != nil:
		return b, got.from, f.failed("TryRead", got.from, err)
	case !ok:
		return b, -1, rpipe.ErrWouldBlock
	}
	return f.block(got), got.from, nil
}

// block returns the block of an arrival.
func (f *In[T]) block(got arrival) rpipe.Block[T] {
	n := len(got.mem) / element.Size[T]()
	return rpipe.Block[T](pipe.NewBlock[T](f.in.pipes[got.from].End, got.addr, got.mem, n))
}

// failed returns the error of a read with its position.
func (f *In[T]) failed(op string, from int, err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return io.EOF
	case from >= 0:
		return f.in.pipes[from].Fail(op, err)
	}
	return f.in.id.Fail(op, err)
}

// An Arrival is a block with the position of its writer in OpenIn's writers.
type Arrival[T any] struct {
	rpipe.Block[T]
	From int
}

// All reads until all pipes have ended, which ends the loop without an error:
//
//	for b, err := range f.All(ctx) { ... }
//
// An error of one pipe does not end the loop: its Arrival holds that pipe's position.
// Any other error ends it. Kind: as Read's.
func (f *In[T]) All(ctx context.Context) iter.Seq2[Arrival[T], error] {
	return func(yield func(Arrival[T], error) bool) {
		for {
			b, from, err := f.Read(ctx)
			if errors.Is(err, io.EOF) && from < 0 || !yield(Arrival[T]{b, from}, err) || err != nil && from < 0 {
				return
			}
		}
	}
}

// Free returns a block's memory to its writer. Any goroutine frees blocks, in any order.
// ErrStale: it was freed before. ErrForeign: it is of another pipe. Kind: one-sided; it
// waits for nothing.
func (f *In[T]) Free(b rpipe.Block[T]) error {
	owner := pipe.Block[T](b).Owner()
	if owner == nil || owner.Options.Summary != f.in.summary {
		return f.in.id.Fail("Free", rpipe.ErrForeign)
	}
	return owner.Fail("Free", owner.Role.(*pipe.Reader).FreeBlock(pipe.Block[T](b).Addr()))
}

// ReportEnds has Read and TryRead return io.EOF with the position of each writer that has
// closed, behind its last block. After the last one they return io.EOF with -1. Call it
// before the first read. Kind: local.
func (f *In[T]) ReportEnds() { f.in.ends = true }

// Stats returns the counts of all pipes together. Kind: local.
func (f *In[T]) Stats() InStats { return f.in.stats() }

// Close ends all pipes at this end, as rpipe.Reader.Close does. A Read that waits fails
// with ErrClosed. The second call does nothing. Kind: one-sided.
func (f *In[T]) Close(ctx context.Context) error { return f.in.close(wait.Context(ctx)) }

// InStats counts what a fan-in did.
type InStats struct {
	rpipe.ReaderStats        // of all pipes
	Open              int    // pipes that have not ended
	Looks             uint64 // of reads at single pipes whose words have changed
}

// arrival holds a block that a pipe delivered, and its writer's position.
type arrival struct {
	from int
	addr rmalloc.Addr
	mem  []byte
}
