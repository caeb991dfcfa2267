package window

import (
	"context"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
)

// A Request is a transfer under way. The caller waits for each once; until then
// the transfer owns its buffer. The zero Request is complete.
type Request struct {
	inner  fabric.Request
	core   *core
	op     string
	target int
	index  int
	count  int
}

// Wait returns when the caller owns the buffer again: filled, for a get, or free
// to be changed, for a put. If ctx ends first, Wait abandons the transfer and the
// caller owns the buffer all the same. Kind: local.
func (r Request) Wait(ctx context.Context) error {
	if r.core == nil {
		return nil
	}
	return r.core.failAt(r.op, r.target, r.index, r.count, r.inner.Wait(ctx))
}

// Done reports whether Wait would return at once. It makes progress. Kind: local.
func (r Request) Done() bool { return r.core == nil || r.inner.Done() }

// StartPut is Put that does not wait, of at most the device's largest message (1
// GiB or more). The caller must not change buf before Request.Wait returns. ctx
// bounds finding the target and room in the queue. Kind: one-sided.
func (w *Window[T]) StartPut(ctx context.Context, target, index int, buf []T) (Request, error) {
	r, v, err := w.view(ctx, target, index, len(buf))
	switch {
	case err != nil || len(buf) == 0:
		return Request{}, w.failAt("StartPut", target, index, len(buf), err)
	case v != nil:
		v.count(len(buf))
		copy(v.mem[index:], buf)
		return Request{}, nil
	}
	data := fabric.Part{At: w.layout.offset(index), Mem: element.Bytes(buf)}
	inner, err := r.Start(ctx, &fabric.Put{Body: data, Lent: true})
	return w.request("StartPut", target, index, len(buf), inner, err)
}

// StartGet is Get that does not wait, of at most the device's largest message (1
// GiB or more). buf holds the elements once Request.Wait has returned. Kind:
// one-sided.
func (w *Window[T]) StartGet(ctx context.Context, target, index int, buf []T) (Request, error) {
	r, v, err := w.view(ctx, target, index, len(buf))
	switch {
	case err != nil || len(buf) == 0:
		return Request{}, w.failAt("StartGet", target, index, len(buf), err)
	case v != nil:
		v.count(len(buf))
		copy(buf, v.mem[index:])
		return Request{}, nil
	}
	inner, err := r.StartRead(ctx, w.layout.offset(index), element.Bytes(buf))
	return w.request("StartGet", target, index, len(buf), inner, err)
}

func (c *core) request(op string, target, index, count int, inner fabric.Request, err error) (Request, error) {
	if err != nil {
		return Request{}, c.failAt(op, target, index, count, err)
	}
	return Request{inner, c, op, target, index, count}, nil
}
