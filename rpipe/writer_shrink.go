package rpipe

import (
	"fmt"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// Shrink leaves the first n elements of a block that is not written yet, and gives
// back the memory behind them: for blocks that were allocated before their length
// was known. ErrStale: it was written or freed before. Kind: local.
func (w *Writer[T]) Shrink(b Block[T], n int) (Block[T], error) {
	a, err := b.own(w.end().End)
	if err == nil && uint(n) > uint(b.Len()) {
		err = fmt.Errorf("%d elements of a block of %d: %w", n, b.Len(), runtime.ErrRange)
	}
	if err == nil {
		err = w.end().Heap.Shrink(a, n*element.Size[T]())
	}
	if err != nil {
		return b, w.end().Fail("Shrink", err)
	}
	b = Block[T](pipe.Block[T](b).Cut(n))
	return b, nil
}
