package farheap

import (
	"context"
	"errors"
	"sync"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A client is a Heap without its element type.
type client struct {
	*side
	mu    sync.Mutex // guards the shadow
	books *rmalloc.Heap
}

func newClient(s *side) (*client, error) {
	books, err := rmalloc.New(rmalloc.Config{Size: s.Spec.Heap, Blocks: s.Options.Blocks, Policy: s.Policy})
	return &client{side: s, books: books}, err
}

// use runs do, which uses the server's memory, and connects on first use. It returns why the
// heap cannot be used. mapped is the heap where the server's memory is mapped, else nil.
func (h *client) use(ctx context.Context, do func(mapped []byte) error) error {
	h.using.RLock()
	defer h.using.RUnlock()
	if err := h.Usable(); err != nil {
		return err
	}
	if !h.Joined.Load() {
		if err := h.gate.pass(ctx, h.meet); err != nil {
			return err
		}
	}
	if h.peerGone() {
		return errServerGone
	}
	return do(h.mapped())
}

// mapped returns the heap where the connected server's memory is mapped, else nil.
func (h *client) mapped() []byte {
	if remote := h.Remote(); remote != nil {
		return remote[pipe.CardSize:]
	}
	return nil
}

func (h *client) alloc(ctx context.Context, n int) (a rmalloc.Addr, err error) {
	err = h.use(ctx, func([]byte) (err error) {
		if gone := h.Fate(); gone != nil {
			return gone
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		a, err = h.books.Alloc(n)
		return err
	})
	if errors.Is(err, rmalloc.ErrFull) {
		err = ErrFull
	}
	return a, pipe.Advise(err)
}

// owns returns an error unless the heap holds the block.
func (h *client) owns(a rmalloc.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _, err := h.books.Range(a)
	return err
}

func (h *client) free(a rmalloc.Addr) error {
	if err := h.Usable(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.books.Free(a)
}

// put and get reach the heap from offset at on.
func (h *client) put(ctx context.Context, at int, src []byte) error {
	return h.use(ctx, func(mapped []byte) error {
		if mapped == nil {
			return h.PutData(ctx, pipe.CardSize+at, src)
		}
		copy(mapped[at:], src)
		return nil
	})
}

func (h *client) get(ctx context.Context, at int, dst []byte) error {
	return h.use(ctx, func(mapped []byte) error {
		if mapped == nil {
			return h.Get(ctx, pipe.CardSize+at, dst)
		}
		copy(dst, mapped[at:])
		return nil
	})
}

func (h *client) flush(ctx context.Context) error {
	return h.use(ctx, func([]byte) error { return h.Flush(ctx) })
}

func (h *client) stats() pipe.HeapStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.books.Stats()
}
