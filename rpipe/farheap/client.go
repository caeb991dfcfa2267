package farheap

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/rpipe/internal/turn"
)

// A client is a Heap without its element type: the writer of a pipe that writes no block. It
// uses the writer's shadow heap, and the reader's memory.
type client struct {
	*pipe.Writer
	open       context.Context // until Close
	shut       context.CancelFunc
	connecting turn.Turn
	using      sync.RWMutex // calls that use the server's memory hold it for reading
	mu         sync.Mutex   // guards the shadow
}

// newClient makes the part of an end that is a client's.
func newClient(p *pipe.End) (*client, error) {
	w, err := pipe.NewWriterEnd(p)
	h := &client{Writer: w, connecting: turn.New()}
	h.open, h.shut = context.WithCancel(context.Background())
	return h, err
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
		if err := h.connect(ctx); err != nil {
			return err
		}
	}
	if h.Deserted || h.Heard() {
		return errServerGone
	}
	return do(h.mapped())
}

// connect connects to the server, until Close.
func (h *client) connect(ctx context.Context) error {
	ctx, cancel := pipe.Until(ctx, h.open)
	defer cancel()
	if err := h.connecting.Take(ctx); err != nil {
		return err
	}
	defer h.connecting.Give()
	if h.Joined.Load() {
		return nil
	}
	return h.Join(ctx, true)
}

// close tells the server that nothing more is put there, once all other calls have ended. It does
// not wait until the server takes its memory back.
func (h *client) close(ctx context.Context) error {
	if h.Closed.Swap(true) {
		return nil
	}
	h.shut()
	h.using.Lock()
	defer h.using.Unlock()
	err := h.Depart(ctx)
	h.Registry.Exit(h.End)
	if h.Fate() != nil {
		return nil // the server needs no word
	}
	return err
}

// mapped returns the heap where the connected server's memory is mapped, else nil.
func (h *client) mapped() []byte {
	if remote := h.Remote(); remote != nil {
		return remote[pipe.CardSize:]
	}
	return nil
}

// alloc allocates n bytes in the server's heap, by the client's books alone: it posts nothing.
func (h *client) alloc(ctx context.Context, n int) (a rmalloc.Addr, err error) {
	if err := cmp.Or(h.Usable(), h.Heap.Fits(n)); err != nil {
		return 0, pipe.Advise(err)
	}
	err = h.use(ctx, func([]byte) (err error) {
		if gone := h.Fate(); gone != nil {
			return gone
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		a, err = h.Heap.Alloc(n)
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
	_, _, err := h.Heap.Range(a)
	return err
}

// free gives a block back to the client's books.
func (h *client) free(a rmalloc.Addr) error {
	if err := h.Usable(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.Heap.Free(a)
}

// put copies src to the server's heap, by a copy where the heap is mapped, else by a WRITE.
func (h *client) put(ctx context.Context, at int, src []byte) error {
	return h.use(ctx, func(mapped []byte) error {
		if mapped == nil {
			return h.PutData(ctx, pipe.CardSize+at, src)
		}
		copy(mapped[at:], src)
		return nil
	})
}

// get copies bytes of the server's heap to dst, by a copy where the heap is mapped, else by a READ.
func (h *client) get(ctx context.Context, at int, dst []byte) error {
	return h.use(ctx, func(mapped []byte) error {
		if mapped == nil {
			return h.Get(ctx, pipe.CardSize+at, dst)
		}
		copy(dst, mapped[at:])
		return nil
	})
}
