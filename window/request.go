package window

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/bulk"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/wait"
)

// A Request is a transfer under way. The caller waits for each once; until then
// the transfer owns its buffer. The zero Request is complete.
type Request struct {
	t   *transfer
	use uint64
}

// A transfer holds what the Request of a queue needs. So a Request is two words, which return in
// registers. Eight words would return on the stack. A started put of 8 bytes into mapped memory
// takes three times as long with them (put_bw of bench, 26 ns for 8).
type transfer struct {
	inner  fabric.Request
	core   *core
	op     string
	target int
	index  int
	count  int
	uses   atomic.Uint64 // waits that have ended; a Request with another number was waited for
}

// Wait returns when the caller owns the buffer again: filled, for a get, or free
// to be changed, for a put. If ctx ends first, Wait abandons the transfer and the
// caller owns the buffer all the same. Kind: local.
func (r Request) Wait(ctx context.Context) error {
	if r.t == nil {
		return nil
	}
	return r.t.wait(ctx, r.use)
}

// wait waits for the transfer and gives it back. use tells which of its uses the caller means.
func (t *transfer) wait(ctx context.Context, use uint64) error {
	if !t.uses.CompareAndSwap(use, use+1) { // another Wait has t
		return t.core.fail("Wait", fabric.ErrEnded)
	}
	err := t.core.failAt(t.op, t.target, t.index, t.count, t.inner.Wait(ctx))
	t.core.transfers.Put(t)
	return err
}

// Done reports whether Wait would return at once. It makes progress. A goroutine must not call
// Done while another one calls Wait. Kind: local.
func (r Request) Done() bool { return r.t == nil || r.t.uses.Load() != r.use || r.t.inner.Done() }

func (r Request) complete() bool {
	return r.t == nil || r.t.uses.Load() != r.use || r.t.inner.Complete()
}

// WaitAny waits until one of the requests can be waited for without delay, and waits for it. It
// returns the first such request's index and its error. The caller takes that request out of
// requests before the next call. The requests may belong to several windows of one job. Index -1
// comes with [ErrRange] if there are none, and with the cause if ctx ends first: then all requests
// go on. Kind: local.
func WaitAny(ctx context.Context, requests []Request) (index int, err error) {
	ctx = wait.Context(ctx)
	first := func() int { return slices.IndexFunc(requests, Request.complete) }
	if index = first(); index < 0 {
		if len(requests) == 0 {
			return -1, fmt.Errorf("WaitAny of no requests: %w", ErrRange)
		}
		f := requests[0].t.core.team.Fabric
		if err := f.Wait(ctx, func() bool { index = first(); return index >= 0 }); index < 0 {
			return -1, requests[0].t.core.fail("WaitAny", err)
		}
	}
	return index, requests[index].Wait(ctx)
}

// WaitAll waits for all requests, and returns the first error. Afterwards the caller owns all
// buffers, as after [Request.Wait] of each. Kind: local.
func WaitAll(ctx context.Context, requests []Request) (err error) {
	for _, r := range requests {
		if e := r.Wait(ctx); err == nil {
			err = e
		}
	}
	return err
}

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
		if len(buf) < bulk.Long/element.Size[T]() {
			copy(v.mem[index:], buf)
		} else {
			storeLong(v.mem[index:], buf)
		}
		return Request{}, nil
	}
	data := fabric.Part{At: w.layout.offset(index), Mem: element.Bytes(buf)}
	inner, err := r.Start(ctx, &fabric.Put{Body: data, Lent: true})
	return w.request("StartPut", target, index, len(buf), inner, err)
}

// StartGet is Get that does not wait, of at most the device's largest message (1 GiB or more). The
// slice buf holds the elements once Request.Wait has returned. Kind: one-sided.
func (w *Window[T]) StartGet(ctx context.Context, target, index int, buf []T) (Request, error) {
	r, v, err := w.view(ctx, target, index, len(buf))
	switch {
	case err != nil || len(buf) == 0:
		return Request{}, w.failAt("StartGet", target, index, len(buf), err)
	case v != nil:
		v.count(len(buf))
		if len(buf) < bulk.Long/element.Size[T]() {
			copy(buf, v.mem[index:])
		} else {
			loadLong(buf, v.mem[index:])
		}
		atomics.AcquireRelease() // as in Get
		return Request{}, nil
	}
	inner, err := r.StartRead(ctx, w.layout.offset(index), element.Bytes(buf))
	return w.request("StartGet", target, index, len(buf), inner, err)
}

// request returns a Request for inner, or the error of its start.
func (c *core) request(op string, target, index, count int, inner fabric.Request, err error) (Request, error) {
	if err != nil {
		return Request{}, c.failAt(op, target, index, count, err)
	}
	t, _ := c.transfers.Get().(*transfer)
	if t == nil {
		t = &transfer{core: c}
	}
	t.inner, t.op, t.target, t.index, t.count = inner, op, target, index, count
	return Request{t, t.uses.Load()}, nil
}
