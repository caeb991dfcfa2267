package rpipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// A Writer puts blocks into a pipe. One goroutine at a time uses it; other goroutines
// may fill the blocks' memory.
type Writer[T any] pipe.TypedWriter[T]

// end returns the end without the element type.
func (w *Writer[T]) end() *pipe.Writer { return (*pipe.TypedWriter[T])(w).End() }

// OpenWriter opens this rank's end of a pipe to another rank of t. That rank opens
// the reader's end by OpenReader with the same options. OpenWriter does not wait for
// the reader: the two ends connect on first use. ErrType: T holds pointers or has no size.
// runtime.ErrRange: t has no such rank, or an option is out of its bounds. runtime.ErrTeam: t is nil.
// runtime.ErrExhausted: the rank's heap has no room. Kind: local.
func OpenWriter[T any](ctx context.Context, t *runtime.Team, reader int, opts ...Option) (*Writer[T], error) {
	var o pipe.Opening
	w := pipe.AddWriter[T](&o, t, reader, opts)
	if err := o.Open(ctx); err != nil {
		return nil, err
	}
	return (*Writer[T])(w), nil
}

// Alloc takes a block of n elements in the reader's heap, from this end's shadow
// of it. Its memory holds what it held before. Without room it waits until the
// reader frees some. When ctx ends first, Alloc has taken no block. ErrTooLarge: the
// heap is smaller. runtime.ErrRange: n is negative. Kind: local where synchronization
// is deferred and there is room, else one-sided.
func (w *Writer[T]) Alloc(ctx context.Context, n int) (Block[T], error) {
	return w.alloc(wait.Context(ctx), "Alloc", n)
}

// alloc is Alloc and TryAlloc: ctx says whether it waits, and op names the call in errors.
func (w *Writer[T]) alloc(ctx context.Context, op string, n int) (Block[T], error) {
	bytes, err := pipe.BytesOf[T](n)
	var a rmalloc.Addr
	if err == nil {
		a, err = w.end().Alloc(ctx, bytes)
	}
	if err != nil {
		return Block[T]{}, w.end().Fail(op, err)
	}
	return w.block(a, n), nil
}

// block returns the block of n elements at an address.
func (w *Writer[T]) block(a rmalloc.Addr, n int) Block[T] {
	end := w.end()
	return Block[T](pipe.NewBlock[T](end.End, a, end.BlockMem(a, n*element.Size[T]()), n))
}

// Write hands a block to the reader. The reader reads blocks in the order of writing.
// From here on the reader owns the block and the slice that Mem returned. Write waits
// while the pipe's width of blocks is unread. When ctx ends first, the writer still
// owns the block. ErrStale: it was written or freed before. Kind: one-sided; completes
// at once, the reader's Free frees the memory.
func (w *Writer[T]) Write(ctx context.Context, b Block[T]) error {
	return w.write(wait.Context(ctx), "Write", b)
}

// write is Write and TryWrite: ctx says whether it waits, and op names the call in errors.
func (w *Writer[T]) write(ctx context.Context, op string, b Block[T]) error {
	a, err := b.own(w.end().End)
	if err == nil {
		err = w.end().Write(ctx, a)
	}
	return w.end().Fail(op, err)
}

// Free gives a block back that was not written. ErrStale: it was written or freed
// before. ErrForeign: it is of another pipe. Kind: local.
func (w *Writer[T]) Free(b Block[T]) error {
	a, err := b.own(w.end().End)
	if err == nil {
		err = w.end().Free(a)
	}
	return w.end().Fail("Free", err)
}

// Send writes a copy of src: Alloc, copy and Write in one. When it returns, the
// caller may change src. Some providers send large data straight from src and copy
// only the part that they cannot send at once. Kind: one-sided.
func (w *Writer[T]) Send(ctx context.Context, src []T) error {
	return w.send(wait.Context(ctx), src, "Alloc", "Write")
}

// send is Send and TrySend: ctx says whether it waits. The other two name the calls in errors.
func (w *Writer[T]) send(ctx context.Context, src []T, alloc, write string) error {
	end, bytes := w.end(), element.Bytes(src)
	a, err := end.Alloc(ctx, len(bytes))
	if err != nil {
		return end.Fail(alloc, err)
	}
	if n := len(bytes); n >= sendsInPlace && n <= end.MostCopied {
		err = end.WriteCopied(ctx, a, bytes)
	} else {
		end.Fill(a, bytes)
		err = end.Write(ctx, a)
	}
	if err != nil {
		_ = end.Free(a) // unless the reader has it
	}
	return end.Fail(write, err)
}

// sendsInPlace is from how many bytes on a copy costs more than another request, which
// leaves at once.
const sendsInPlace = 16 << 10

// Flush returns when all written blocks lie in the reader's memory, in a pull pipe
// their notifications. A reader that learns of the Flush sees them, even where the
// writer's rank dies. Kind: one-sided.
func (w *Writer[T]) Flush(ctx context.Context) error {
	ctx = wait.Context(ctx)
	return w.end().Fail("Flush", w.end().Flushed(ctx))
}

// Connect waits until the reader has opened its end, and connects to it. Without
// Connect the first call that needs the reader connects. ErrMismatch: the two ends
// have different options. Kind: one-sided.
func (w *Writer[T]) Connect(ctx context.Context) error {
	return w.end().Fail("Connect", w.end().Ready(wait.Context(ctx)))
}

// Stats returns what the writer did and how full the heap is. It looks at all
// of its holes, so call it as the other calls of a writer, one at a time. Kind: local.
func (w *Writer[T]) Stats() WriterStats { return w.end().Stats() }

// Name returns the pipe's name with its incarnation, such as "halo#0". Kind:
// local.
func (w *Writer[T]) Name() string { return w.end().Name }

// CloseWrite tells the reader that no block follows. It returns without waiting until
// the reader has read all of them, which Close does; call Close all the same. Alloc and
// Write fail with ErrClosed from then on, and the reader gets io.EOF behind the last
// block. A reader that opens its end later gets io.EOF. If ctx ends first, the reader may
// not know; the next CloseWrite or Close tells it. Kind: one-sided; it waits for the
// reader's rank where the two are not connected, and for no room in the queue.
func (w *Writer[T]) CloseWrite(ctx context.Context) error {
	return w.end().Fail("CloseWrite", w.end().CloseWrite(wait.Context(ctx)))
}

// Close tells the reader that no block follows, waits until it has read all of
// them and io.EOF, and gives the pipe's memory back. When each rank of a ring calls Close
// before it reads io.EOF, all wait: call CloseWrite first. When ctx ends first, or the
// reader is gone, the error says so; the pipe is closed all the same. The second call
// does nothing. Kind: one-sided.
func (w *Writer[T]) Close(ctx context.Context) error {
	return w.end().Fail("Close", w.end().Close(wait.Context(ctx)))
}
