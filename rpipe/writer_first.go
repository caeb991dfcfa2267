package rpipe

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// WriteFirst hands the first n elements of a block to the reader as Write does. Once they
// are written, the memory behind them is free: a writer allocates before it knows how
// much it will write. After an error the block is whole and still the writer's. Kind: as
// Write's.
func (w *Writer[T]) WriteFirst(ctx context.Context, b Block[T], n int) error {
	return w.writeFirst(wait.Context(ctx), "WriteFirst", b, n)
}

// TryWriteFirst is WriteFirst without waiting for the reader, as TryWrite is Write.
// Kind: as Write's.
func (w *Writer[T]) TryWriteFirst(b Block[T], n int) error {
	return w.writeFirst(w.end().Now, "TryWriteFirst", b, n)
}

// writeFirst is WriteFirst and TryWriteFirst: ctx says whether it waits, and op names the call in
// errors.
func (w *Writer[T]) writeFirst(ctx context.Context, op string, b Block[T], n int) error {
	a, err := b.own(w.end().End)
	if err == nil {
		err = b.has(n)
	}
	if err == nil {
		err = w.end().WriteFirst(ctx, a, n*element.Size[T]())
	}
	return w.end().Fail(op, err)
}

// has returns an error unless the block has n elements.
func (b *Block[T]) has(n int) error {
	if uint(n) > uint(b.Len()) {
		return fmt.Errorf("%d elements of a block of %d: %w", n, b.Len(), runtime.ErrRange)
	}
	return nil
}
