package farheap

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// A Heap uses memory of the server for this rank alone. A Get finds what this heap put
// before, from whichever goroutine, if the Put has returned. All methods may be called
// from any goroutine. Package rpipe lists the errors of a call.
type Heap[T any] struct{ end *client }

// A Remote names a block of a Heap. It is a value; copies are the same block.
type Remote[T any] struct {
	mem   []T
	n     int
	addr  rmalloc.Addr
	owner *pipe.End
}

// Len returns the number of elements. Kind: local.
func (b Remote[T]) Len() int { return b.n }

// Mem returns the block's elements where the server's memory is mapped, else nil:
// then Put and Get reach them. After Free the slice means nothing: a store into it may
// change another block.
func (b Remote[T]) Mem() []T { return b.mem }

// Addr returns where the block lies. Kind: local.
func (b Remote[T]) Addr() rpipe.Addr { return rpipe.Addr(b.addr) }

// Open opens a heap at another rank of t, the server. The server calls Serve with the same
// name and size. Open does not wait for it: the two ends connect on first use. Kind: local.
func Open[T any](ctx context.Context, t *runtime.Team, server int, opts ...Option) (*Heap[T], error) {
	end, err := open[T](ctx, "Open", t, server, true, opts, newClient)
	if err != nil {
		return nil, err
	}
	return &Heap[T]{end}, nil
}

// Alloc takes a block of n elements. It does not clear the block's memory. Without room
// it fails with ErrFull at once, as it sends the server no request. rpipe.ErrTooLarge: the heap
// is smaller. Kind: local once connected.
func (h *Heap[T]) Alloc(ctx context.Context, n int) (Remote[T], error) {
	ctx = wait.Context(ctx)
	bytes, err := pipe.BytesOf[T](n)
	var a rmalloc.Addr
	if err == nil {
		a, err = h.end.alloc(ctx, bytes)
	}
	if err != nil {
		return Remote[T]{}, h.end.Fail("Alloc", err)
	}
	b := Remote[T]{n: n, addr: a, owner: h.end.End}
	if mapped := h.end.mapped(); mapped != nil {
		b.mem = element.View[T](mapped[a.Offset():], n)[:n:n]
	}
	return b, nil
}

// Put stores src in the block from an index on. It returns at local completion:
// src may be changed again. rpipe.ErrStale: the block was freed. Kind: one-sided.
func (h *Heap[T]) Put(ctx context.Context, b Remote[T], index int, src []T) error {
	ctx = wait.Context(ctx)
	at, err := h.place(b, index, len(src))
	if err == nil && len(src) > 0 {
		err = h.end.put(ctx, at, element.Bytes(src))
	}
	return h.end.Fail("Put", err)
}

// Get fills dst from the block's elements from an index on. dst is filled when Get
// returns nil. The caller may use dst again when Get returns, also with an error.
// rpipe.ErrStale: the block was freed. Kind: one-sided.
func (h *Heap[T]) Get(ctx context.Context, b Remote[T], index int, dst []T) error {
	ctx = wait.Context(ctx)
	at, err := h.place(b, index, len(dst))
	if err == nil && len(dst) > 0 {
		err = h.end.get(ctx, at, element.Bytes(dst))
	}
	return h.end.Fail("Get", err)
}

// place checks arguments and returns where in the heap the elements lie.
func (h *Heap[T]) place(b Remote[T], index, count int) (int, error) {
	if b.owner != h.end.End {
		return 0, rpipe.ErrForeign
	}
	if index < 0 || index > b.n-count {
		return 0, fmt.Errorf("%d elements from index %d: %w [0, %d)", count, index, runtime.ErrRange, b.n)
	}
	return b.addr.Offset() + index*element.Size[T](), h.end.owns(b.addr)
}

// Free gives a block back. rpipe.ErrStale: it was freed before. Kind: local.
func (h *Heap[T]) Free(b Remote[T]) error {
	err := rpipe.ErrForeign
	if b.owner == h.end.End {
		err = h.end.free(b.addr)
	}
	return h.end.Fail("Free", err)
}

// Flush returns when everything that was put lies in the server's memory. It
// fails where the server is dead, which puts and gets of mapped memory do not
// notice. Kind: one-sided.
func (h *Heap[T]) Flush(ctx context.Context) error {
	ctx = wait.Context(ctx)
	return h.end.Fail("Flush", h.end.use(ctx, func([]byte) error { return h.end.Writer.Flush(ctx) }))
}

// Stats returns how full the heap is. It looks at all of its holes. Kind: local.
func (h *Heap[T]) Stats() rpipe.HeapStats {
	h.end.mu.Lock()
	defer h.end.mu.Unlock()
	return h.end.Heap.Stats()
}

// Name returns the heap's name with its incarnation, such as "cache#0". Kind:
// local.
func (h *Heap[T]) Name() string { return h.end.Name }

// Close waits until calls by other goroutines have returned, and tells the server that
// this rank uses its memory no more. The heap's contents are lost. The second call does
// nothing. Kind: one-sided.
func (h *Heap[T]) Close(ctx context.Context) error {
	return h.end.Fail("Close", h.end.close(wait.Context(ctx)))
}
