package fan

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// An Out writes each block to many readers. They call rpipe.OpenReader with the same
// options. The caller fills the block once, in registered memory of the writer's rank.
// Write copies it into the heap of each mapped reader. For each reader that is not
// mapped, it posts one work request.
//
//	Alloc, fill    [block]  --- copy, flag ------------->  heap of reader 1 (mapped)
//	Write             |  \----- work request, flag ----->  heap of reader 2
//	                  \-------- work request, flag ----->  heap of reader 3
//
// The writer reuses the block's memory when all readers that are not mapped have read
// it. Readers have heaps of their own, and free blocks in any order.
//
// A slow reader stops the writer once its heap is full, or its pipe's width of blocks is
// unread. All readers with room have got the block by then.
//
// A reader leaves the fan-out when its rank dies or returns, or when it closes its end. One Write reports it after
// writing to the remaining readers; later calls write to those alone.
//
// One goroutine at a time uses an Out.
type Out[T any] struct{ out *fanOut }

// OpenOut opens this rank's ends of pipes to other ranks of t, one for each element of
// readers: all of them or none. It takes memory for one more heap, in which the caller
// fills blocks.
//
// ErrTeam: t is nil. ErrRange: readers is empty or has a rank that t has not, or an option is out
// of its range. errors.ErrUnsupported: WithPull was given, and a fan-out pushes. ErrType:
// elements of T hold pointers. runtime.ErrExhausted: the heap is too small. Kind: local; it
// connects to readers on first use.
func OpenOut[T any](ctx context.Context, t *runtime.Team, readers []int, opts ...rpipe.Option) (*Out[T], error) {
	ctx = wait.Context(ctx)
	if err := checkPeers(t, readers); err != nil {
		return nil, fmt.Errorf("OpenOut to %d readers: %w", len(readers), err)
	}
	o, err := pipe.Collect(opts)
	if err == nil && o.Pull {
		err = fmt.Errorf("pull: %w: a fan-out pushes", errors.ErrUnsupported)
	}
	if err != nil {
		return nil, fmt.Errorf("OpenOut: %w", err)
	}
	out, err := newFanOut(ctx, t, &o)
	if err != nil {
		return nil, fmt.Errorf("OpenOut: %w", err)
	}
	var all pipe.Opening
	for _, reader := range readers {
		pipe.Add[T](&all, "OpenWriter", t, reader, true, opts, out.add)
	}
	if err := all.Open(ctx); err != nil {
		out.stage.drop()
		return nil, fmt.Errorf("OpenOut: %w", err)
	}
	return &Out[T]{out}, nil
}

// Alloc allocates a block of n elements, which the caller owns until Write or Free. Without
// room it waits until readers have read blocks. ErrTooLarge: the heap is smaller. ErrRange:
// n is negative. ErrClosed: the fan-out is closed. Kind: local.
func (f *Out[T]) Alloc(ctx context.Context, n int) (rpipe.Block[T], error) {
	ctx = wait.Context(ctx)
	bytes, err := pipe.BytesOf[T](n)
	var a rmalloc.Addr
	if err == nil {
		a, err = f.out.alloc(ctx, bytes)
	}
	if err != nil {
		return rpipe.Block[T]{}, f.out.id.Fail("Alloc", err)
	}
	return rpipe.Block[T](pipe.NewBlock[T](f.out.id, a, f.out.stage.Mem[a.Offset():], n)), nil
}

// Write hands a block to all readers. Each reader reads blocks in the order of writing.
// From here on the readers own the block and the slice that Mem returned. Write waits
// while a reader has no room. It does not wait until the block has arrived; Flush does.
//
// When ctx ends first, the caller still owns the block, and some readers may have it.
// Write of the same block hands it to the remaining readers; Free leaves those without
// it. Until one of the two, Write of another block fails with ErrUnfinished.
//
// Any other error names the readers that left, each by an rpipe.OpError with its rank. All
// remaining readers have the block. Without any reader left the error is ErrClosed.
// Kind: one-sided.
func (f *Out[T]) Write(ctx context.Context, b rpipe.Block[T]) error {
	ctx = wait.Context(ctx)
	a, err := pipe.Block[T](b).Own(f.out.id)
	if err != nil {
		return f.out.id.Fail("Write", err)
	}
	return f.out.write(ctx, a)
}

// Free frees a block that the caller owns: Write did not hand it to all readers. ErrStale:
// it was freed or written before. ErrForeign: it is of another fan-out. Kind: local.
func (f *Out[T]) Free(b rpipe.Block[T]) error {
	a, err := pipe.Block[T](b).Own(f.out.id)
	if err == nil {
		err = f.out.free(a)
	}
	return f.out.id.Fail("Free", err)
}

// Send writes a copy of src, which the caller may change when Send returns: Alloc, copy and
// Write in one. When ctx ends first, readers that lack the copy do not get it. Kind:
// one-sided. Errors: as those of Alloc and Write.
func (f *Out[T]) Send(ctx context.Context, src []T) error {
	b, err := f.Alloc(ctx, len(src))
	if err != nil {
		return err
	}
	copy(b.Mem(), src)
	if err := f.Write(ctx, b); err != nil {
		_ = f.out.free(pipe.Block[T](b).Addr()) // unless the readers have it
		return err
	}
	return nil
}

// Flush returns when all blocks that were written lie in the memory of the readers that did
// not leave. It joins the errors of all readers. Kind: one-sided.
func (f *Out[T]) Flush(ctx context.Context) error { return f.out.flush(wait.Context(ctx)) }

// Readers returns how many readers did not leave, as far as this rank knows. Kind: local.
func (f *Out[T]) Readers() int { return f.out.left() }

// Stats returns how full the writer's memory for blocks is, and the counts of writes to
// each reader, by position in OpenOut's readers. Kind: local.
func (f *Out[T]) Stats() (filled rpipe.HeapStats, readers []rpipe.WriterStats) {
	for _, p := range f.out.pipes {
		readers = append(readers, p.Stats())
	}
	return f.out.stage.heap.Stats(), readers
}

// Close tells all readers that no block follows, waits until they have read all blocks,
// and gives the memory back. It returns an error for each reader that died or closed
// with blocks unread. The second call does nothing. Kind: one-sided.
func (f *Out[T]) Close(ctx context.Context) error { return f.out.close(wait.Context(ctx)) }

// ErrUnfinished: the context of another block's Write ended when some readers had the block.
// Write or free that block first.
var ErrUnfinished = errors.New("another block is written to some readers only: write or free it first")
