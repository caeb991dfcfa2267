package pipe

import (
	"context"
	"math"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A copier is a far end that takes over the bytes of a put, at best without a copy.
type copier interface {
	// mostCopied is how long each part may be, 0 where putCopied is not the thing to do.
	mostCopied() int
	// putCopied is PutFlag of two parts, one behind the other. It waits for room in a
	// queue at most; an error means that the flag was not put.
	putCopied(ctx context.Context, to int, head, body []byte, flag int, value uint64) error
}

// WriteParts is write of a block whose content lies elsewhere.
func (w *Writer) WriteParts(ctx context.Context, a rmalloc.Addr, head, body []byte) error {
	return w.writeBy(ctx, a, math.MaxInt, func(offset, _ int, flag uint64) error {
		return w.copier.putCopied(ctx, w.readerHeap()+offset, head, body, w.slot.Index(), flag)
	})
}
