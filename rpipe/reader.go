package rpipe

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// A Reader takes blocks out of a pipe. One goroutine at a time calls Read, TryRead,
// Recv, All, Connect and Arrivals. Any goroutine may call Free, Sync, Close and Stats.
type Reader[T any] pipe.TypedReader[T]

// end returns the end without the element type.
func (r *Reader[T]) end() *pipe.Reader { return (*pipe.TypedReader[T])(r).End() }

// OpenReader opens this rank's end of a pipe from another rank of t. That rank opens
// the writer's end by OpenWriter with the same options. OpenReader does not wait for
// the writer: the two ends connect on first use. ErrType: T holds pointers or has no size.
// runtime.ErrRange: t has no such rank, or an option is out of its bounds. runtime.ErrTeam: t is nil.
// runtime.ErrExhausted: the rank's heap has no room. Kind: local.
func OpenReader[T any](ctx context.Context, t *runtime.Team, writer int, opts ...Option) (*Reader[T], error) {
	var o pipe.Opening
	r := pipe.AddReader[T](&o, t, writer, opts)
	if err := o.Open(ctx); err != nil {
		return nil, err
	}
	return (*Reader[T])(r), nil
}

// Read waits for the next block and returns it. It polls the notification flag that
// the device stores behind the block. The reader owns the block until Free. io.EOF:
// the writer has closed the pipe, and the reader has read all blocks. Read has told
// the writer by then, whose Close waits for that. When ctx ends first, Read returns the cause:
// call it again, or Close. Read returns blocks that have arrived before an error that
// came later. Kind: local; in a pull pipe from a rank that is not mapped, one-sided.
func (r *Reader[T]) Read(ctx context.Context) (Block[T], error) {
	ctx = wait.Context(ctx)
	a, mem, err := r.end().ReadBlock(ctx)
	if err != nil {
		return Block[T]{}, r.failed("Read", err)
	}
	return r.block(a, mem), nil
}

// block returns the block at an address, with its bytes.
func (r *Reader[T]) block(a rmalloc.Addr, mem []byte) Block[T] {
	return Block[T](pipe.NewBlock[T](r.end().End, a, mem, len(mem)/element.Size[T]()))
}

// failed wraps an error. The end of a pipe is none.
func (r *Reader[T]) failed(op string, err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return r.end().Fail(op, err)
}

// Arrived reports whether Read would return a block or an error at once. It also
// reports true while the writer waits for the count of blocks that were read; TryRead
// sends that count. Arrived takes a few loads and makes no progress. Callers that wait
// for other events as well poll it. Kind: local.
func (r *Reader[T]) Arrived() bool { return r.end().HasArrived() }

// TryRead reads the next block as Read does, without waiting for it. ErrWouldBlock: no
// block has arrived, or a pull pipe has no room for it. A call that finds nothing makes
// progress and looks again. Kind: as Read's.
func (r *Reader[T]) TryRead() (Block[T], error) {
	a, mem, ok, err := r.end().Poll(context.Background())
	if err == nil && !ok {
		err = ErrWouldBlock
	}
	if err != nil {
		return Block[T]{}, r.failed("TryRead", err)
	}
	return r.block(a, mem), nil
}

// Connect waits until the writer has opened its end, and connects to it. Without
// Connect the first call that needs the writer connects. ErrMismatch: the two ends
// have different options. Connect counts as a call that reads. Kind: one-sided.
func (r *Reader[T]) Connect(ctx context.Context) error {
	return r.end().Fail("Connect", r.end().ConnectNow(wait.Context(ctx)))
}

// Recv reads a block, copies as much of it as dst holds and frees it: Read, copy
// and Free in one. It returns the block's length, which is more than len(dst)
// when the rest was dropped. Kind: as Read's.
func (r *Reader[T]) Recv(ctx context.Context, dst []T) (n int, err error) {
	b, err := r.Read(ctx)
	if err != nil {
		return 0, err
	}
	copy(dst, b.Mem())
	return b.Len(), r.Free(b)
}

// All reads until the end of the pipe, which ends the loop without an error:
//
//	for b, err := range r.All(ctx) { ... }
//
// After an error the loop ends. Each block is the reader's until Free. Kind: as
// Read's.
func (r *Reader[T]) All(ctx context.Context) iter.Seq2[Block[T], error] {
	return func(yield func(Block[T], error) bool) {
		for {
			b, err := r.Read(ctx)
			if errors.Is(err, io.EOF) || !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Sync tells the writer at once which blocks were read and freed. Without Sync the
// reader's timer tells it a moment later. Kind: one-sided; does not wait for the writer.
func (r *Reader[T]) Sync(ctx context.Context) error {
	return r.end().Fail("Sync", r.end().Sync(wait.Context(ctx)))
}

// Stats returns what the reader did. Kind: local.
func (r *Reader[T]) Stats() ReaderStats { return r.end().Stats() }

// Name returns the pipe's name with its incarnation, such as "halo#0". Kind:
// local.
func (r *Reader[T]) Name() string { return r.end().End.Name }

// Free gives a block's memory back to the writer. The writer learns of it later, or by
// Sync. ErrStale: the block was freed before. Kind: one-sided; it waits for nothing.
func (r *Reader[T]) Free(b Block[T]) error {
	a, err := b.own(r.end().End)
	if err == nil {
		err = r.end().FreeBlock(a)
	}
	return r.end().Fail("Free", err)
}

// Close ends the pipe at this end. Blocks that were not read are lost, and the
// writer learns that the reader has closed. Blocks that were read mean nothing
// any more. The second call does nothing. Kind: one-sided.
func (r *Reader[T]) Close(ctx context.Context) error {
	return r.end().Fail("Close", r.end().Close(wait.Context(ctx)))
}
