package pipe

import (
	"context"
	"math"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// WriteParts is write of a block whose content lies elsewhere, each part of which has at
// most MostParts bytes.
func (w *Writer) WriteParts(ctx context.Context, a rmalloc.Addr, head, body []byte) error {
	return w.writeBy(ctx, a, math.MaxInt, func(offset, _ int, flag uint64) error {
		return w.PutParts(ctx, w.readerHeap()+offset, head, body, w.place(), flag)
	})
}
