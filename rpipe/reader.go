package rpipe

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// A Reader is the end of a pipe that blocks come out of. Read, TryRead, Recv, All,
// Connect and Arrivals are called by one goroutine at a time; Free, Sync, Close and Stats by
// any.
type Reader[T any] struct{ end *readerEnd }

// OpenReader opens this rank's end of a pipe from another rank of t, which opens
// the other one by OpenWriter with the same options. It does not wait for that:
// the two connect on first use. Kind: local.
func OpenReader[T any](ctx context.Context, t *runtime.Team, writer int, opts ...Option) (*Reader[T], error) {
	ctx = wait.Context(ctx)
	p, team, err := draft[T](t, writer, opts)
	if err != nil {
		return nil, p.fail("OpenReader", err)
	}
	r := &Reader[T]{}
	if err := p.registry.enter(ctx, p.reading(ctx, team, &r.end)); err != nil {
		return nil, err
	}
	return r, nil
}

// Read returns the next block that was written, waiting for it: it polls the
// notification flag that comes behind the block. The block is the reader's until
// Free. io.EOF: the writer has closed the pipe, all was read, and Read has told the
// writer, whose Close waits for that. When ctx ends first, Read returns the cause: call it
// again, or Close. What has arrived is returned before an error that came later. Kind:
// local; in a pull pipe from a rank that is not mapped, one-sided.
func (r *Reader[T]) Read(ctx context.Context) (Block[T], error) {
	ctx = wait.Context(ctx)
	a, mem, err := r.end.readBlock(ctx)
	if err != nil {
		return Block[T]{}, r.failed("Read", err)
	}
	return r.block(a, mem), nil
}

func (r *Reader[T]) block(a rmalloc.Addr, mem []byte) Block[T] {
	return Block[T]{first: element.First[T](mem), n: len(mem) / element.Size[T](), addr: a, owner: r.end.pipe}
}

// failed wraps an error. The end of a pipe is none.
func (r *Reader[T]) failed(op string, err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	return r.end.fail(op, err)
}

// Arrived tells whether Read has something to return, which may be an error, or the
// writer waits to hear how much was read, which TryRead tells it. It takes a few loads and
// makes no progress: for a caller that waits for something else as well. Kind: local.
func (r *Reader[T]) Arrived() bool { return r.end.hasArrived() }

// TryRead reads the next block as Read does, without waiting for it. ErrWouldBlock: no
// block has arrived, or a pull pipe has no room for it. A call that finds nothing makes
// progress and looks again. Kind: as Read's.
func (r *Reader[T]) TryRead() (Block[T], error) {
	b, ok, err := r.tryRead(context.Background())
	if !ok && err == nil {
		err = ErrWouldBlock
	}
	return b, err
}

// Connect connects to the writer, waiting until it has opened its end. Without it the
// first call that needs the writer does. ErrMismatch: the ends were opened with options
// that differ. It counts as a call that reads. Kind: one-sided.
func (r *Reader[T]) Connect(ctx context.Context) error {
	return r.end.fail("Connect", r.end.connectNow(wait.Context(ctx)))
}

func (r *Reader[T]) tryRead(ctx context.Context) (b Block[T], ok bool, err error) {
	a, mem, ok, err := r.end.poll(ctx)
	if !ok || err != nil {
		return Block[T]{}, false, r.failed("TryRead", err)
	}
	return r.block(a, mem), true, nil
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

// Sync lets the writer know at once what was read and freed, which it learns by
// itself a moment later. Kind: one-sided; does not wait for the writer.
func (r *Reader[T]) Sync(ctx context.Context) error {
	return r.end.fail("Sync", r.end.sync(wait.Context(ctx)))
}

// Stats returns what the reader did. Kind: local.
func (r *Reader[T]) Stats() ReaderStats { return r.end.stats() }

// Name returns the pipe's name with its incarnation, such as "halo#0". Kind:
// local.
func (r *Reader[T]) Name() string { return r.end.pipe.name }

// Free lets the writer have a block's memory again, which it learns in its own
// time. ErrStale: it was freed before. Kind: one-sided; it waits for nothing.
func (r *Reader[T]) Free(b Block[T]) error {
	a, err := b.own(r.end.pipe)
	if err == nil {
		err = r.end.freeBlock(a)
	}
	return r.end.fail("Free", err)
}

// Close ends the pipe at this end. Blocks that were not read are lost, and the
// writer learns that the reader has closed. Blocks that were read mean nothing
// any more. The second call does nothing. Kind: one-sided.
func (r *Reader[T]) Close(ctx context.Context) error {
	return r.end.fail("Close", r.end.close(wait.Context(ctx)))
}

// Alone is for this module's own packages: nobody else can make a key. It tells that the
// writer's end was never opened and never will be, for which this one, which is closed,
// would keep its memory.
func (r *Reader[T]) Alone(fabric.Key) { r.end.parting.vain.Store(true) }
