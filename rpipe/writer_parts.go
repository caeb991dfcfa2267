package rpipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// SendParts is Send of one block from two slices: the elements of head, and behind
// them those of body. Kind: one-sided.
func (w *Writer[T]) SendParts(ctx context.Context, head, body []T) error {
	b, err := w.Alloc(ctx, len(head)+len(body))
	if err != nil {
		return err
	}
	most := w.end.mostParts / element.Size[T]()
	if element.Size[T]()*len(body) >= partsFrom && max(len(head), len(body)) <= most {
		err = w.end.fail("Write", w.end.writeParts(ctx, b.addr, element.Bytes(head), element.Bytes(body)))
	} else {
		copy(b.Mem(), head)
		copy(b.Mem()[len(head):], body)
		err = w.Write(ctx, b)
	}
	if err != nil {
		_ = w.end.free(b.addr) // unless the reader has it
	}
	return err
}

// partsFrom is from how many bytes on a copy costs more than another request, which
// leaves at once.
const partsFrom = 16 << 10

// A copier is a far end that takes over what is put, at best without a copy.
type copier interface {
	// mostCopied is how long each part may be, 0 where putCopied is not the thing to do.
	mostCopied() int
	// putCopied is putFlag of two parts, one behind the other. It waits for room in a
	// queue at most; an error means that the flag was not put.
	putCopied(ctx context.Context, to int, head, body []byte, flag int, value uint64) error
}

// writeParts is write of a block whose content lies elsewhere.
func (w *writerEnd) writeParts(ctx context.Context, a rmalloc.Addr, head, body []byte) error {
	return w.writeBy(ctx, a, func(offset, _ int, flag uint64) error {
		return w.copier.putCopied(ctx, w.readerHeap()+offset, head, body, w.slot.Index(), flag)
	})
}
