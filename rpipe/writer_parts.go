package rpipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/element"
)

// SendParts is Send of one block from two slices: the elements of head, and behind
// them those of body. Kind: one-sided.
func (w *Writer[T]) SendParts(ctx context.Context, head, body []T) error {
	b, err := w.Alloc(ctx, len(head)+len(body))
	if err != nil {
		return err
	}
	most := w.end().MostParts / element.Size[T]()
	if element.Size[T]()*len(body) >= partsFrom && max(len(head), len(body)) <= most {
		err = w.end().Fail("Write", w.end().WriteParts(ctx, b.addr(), element.Bytes(head), element.Bytes(body)))
	} else {
		copy(b.Mem(), head)
		copy(b.Mem()[len(head):], body)
		err = w.Write(ctx, b)
	}
	if err != nil {
		_ = w.end().Free(b.addr()) // unless the reader has it
	}
	return err
}

// partsFrom is from how many bytes on a copy costs more than another request, which
// leaves at once.
const partsFrom = 16 << 10
