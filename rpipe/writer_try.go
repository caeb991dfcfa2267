package rpipe

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/runtime"
)

// TryAlloc allocates a block of n elements as Alloc does, without waiting for the
// reader. ErrWouldBlock: the reader has not opened its end, or has no room for the
// block. A call that finds no room makes progress and looks again. It also tells the
// reader, once, that this end wants memory; the reader then announces what it frees
// at once. A call waits for the reader's rank at most, for a second: to connect, and
// where synchronization is immediate for what was freed. Kind: as Alloc's.
func (w *Writer[T]) TryAlloc(n int) (Block[T], error) {
	bytes, err := bytesOf[T](n)
	var a rmalloc.Addr
	if err == nil {
		a, err = w.end.allocNow(bytes)
	}
	if err != nil {
		return Block[T]{}, w.end.fail("TryAlloc", err)
	}
	return w.block(a, n), nil
}

// TryWrite hands a block to the reader as Write does, without waiting for the reader.
// ErrWouldBlock: as many blocks as the pipe is wide are not read yet, or the queue to
// the reader's rank is full. The block is still the writer's then. A call that finds no
// room makes progress and tells the reader, as TryAlloc does. Kind: as Write's.
func (w *Writer[T]) TryWrite(b Block[T]) error {
	a, err := b.own(w.end.pipe)
	if err == nil {
		err = w.end.writeNow(a)
	}
	return w.end.fail("TryWrite", err)
}

// TrySend writes a copy of src: TryAlloc, copy and TryWrite in one. After ErrWouldBlock
// nothing was sent, and no block is left. Kind: as Send's.
func (w *Writer[T]) TrySend(src []T) error {
	if err := w.end.widthNow(); err != nil {
		return w.end.fail("TrySend", err)
	}
	b, err := w.TryAlloc(len(src))
	if err != nil {
		return err
	}
	copy(b.Mem(), src)
	if err = w.TryWrite(b); err != nil {
		_ = w.end.free(b.addr) // the reader does not have it
	}
	return err
}

// bytesOf returns the size of n elements.
func bytesOf[T any](n int) (int, error) {
	size := element.Size[T]()
	if n < 0 || n > math.MaxInt/size {
		return 0, tooMany(n, size)
	}
	return n * size, nil
}

func tooMany(n, size int) error {
	return fmt.Errorf("%d elements of %d bytes: %w", n, size, runtime.ErrRange)
}

// readyNow is ready without waiting for the reader to open its end. It waits for an
// answer of the reader's rank, for lastMoment at most.
func (w *writerEnd) readyNow() error {
	if !w.up && !w.joined.Load() && w.writable() == nil {
		brief, cancel := aMoment()
		defer cancel()
		_, deserted, err := w.join(brief, false)
		switch {
		case err != nil:
			return err
		case !w.joined.Load():
			return ErrWouldBlock
		}
		w.deserted = deserted
	}
	return w.ready(w.noWait)
}

// aMoment returns a context of a call that waits for an answer of the other rank, and
// for nothing else.
func aMoment() (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(context.Background(), lastMoment, ErrWouldBlock)
}

// allocNow is alloc without the wait.
func (w *writerEnd) allocNow(n int) (rmalloc.Addr, error) {
	if err := w.readyNow(); err != nil {
		return 0, err
	}
	ctx := w.noWait
	if w.spec.sync == Immediate && !w.direct {
		brief, cancel := aMoment()
		defer cancel()
		ctx = brief
	}
	a, err := w.takeAndAlloc(ctx, n)
	if !errors.Is(err, rmalloc.ErrFull) {
		return a, err
	}
	w.progress()
	if a, err = w.takeAndAlloc(ctx, n); !errors.Is(err, rmalloc.ErrFull) {
		return a, err
	}
	return 0, w.wish(wantsMemory)
}

// takeAndAlloc takes in freed memory and looks for a hole.
func (w *writerEnd) takeAndAlloc(ctx context.Context, n int) (rmalloc.Addr, error) {
	if err := w.tags.take(ctx); err != nil {
		return 0, err
	}
	return w.tryAlloc(n)
}

// writeNow is write without the wait.
func (w *writerEnd) writeNow(a rmalloc.Addr) error {
	if w.writeNear(a) {
		return nil
	}
	if err := w.widthNow(); err != nil {
		return err
	}
	return w.writeFrom(w.noWait, a, a.Offset())
}

// widthNow returns nil once a block can be written without a wait for the reader.
func (w *writerEnd) widthNow() error {
	if err := w.readyNow(); err != nil {
		return err
	}
	if ok, err := w.hasWidth(); ok || err != nil {
		return err
	}
	w.progress()
	if ok, err := w.hasWidth(); ok || err != nil {
		return err
	}
	return w.wish(wantsWidth)
}

// hasWidth reports whether one more block may be on its way.
func (w *writerEnd) hasWidth() (bool, error) {
	if w.inFlight() < w.spec.width {
		return true, nil
	}
	err := w.takeCredit()
	return w.inFlight() < w.spec.width, err
}

// wish tells the reader that this end finds no room, unless an earlier wish has not
// been answered yet. It returns ErrWouldBlock, or why the reader cannot be told. A wish
// that finds no room in the queue is told by the next call.
func (w *writerEnd) wish(kind uint64) error {
	if w.flag(creditFlag) != w.asked {
		w.wishes = 0 // the reader has answered
	}
	if w.wishes&kind == 0 {
		if err := w.want(w.noWait, w.wishes|kind); err != nil {
			return err
		}
	}
	return ErrWouldBlock
}
