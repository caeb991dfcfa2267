package rpipe

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
)

// The two ends of a heap. Each has a card; behind the server's lies the heap. Each
// has one flag, the peer's last word.
const (
	goneFlag  = 0
	heapFlags = 1
)

// The names of a heap's ends.
const (
	clientsEnd = "client"
	serversEnd = "server"
)

// enterHeap opens one end of a heap.
func (p *pipe) enterHeap(ctx context.Context, t *team.Team, end string, begin func() (stopper, error)) error {
	p.spec = spec{elem: "served memory", size: 1, heap: p.spec.heap, served: true}
	pair := &pairing{team: t, name: p.name, writer: p.rank, reader: p.peer}
	if end == serversEnd {
		pair.writer, pair.reader = p.peer, p.rank
	}
	return p.registry.enter(ctx, birth{team: t, name: pair.key(end), fail: unwrapped, make: func(incarnation int) (stopper, error) {
		mine := linkEnd{pair.region(incarnation, clientsEnd), heapFlags, cardSize}
		theirs := linkEnd{pair.region(incarnation, serversEnd), heapFlags, cardSize + p.spec.heap}
		if end == serversEnd {
			mine, theirs = theirs, mine
		}
		if err := p.hook(ctx, t, incarnation, mine, theirs, 0); err != nil {
			return nil, err
		}
		s, err := begin()
		if err != nil {
			return nil, errors.Join(err, p.release())
		}
		return s, nil
	}})
}

func unwrapped(err error) error { return err }

// A heapEnd is a Heap without its element type.
type heapEnd struct {
	heapSide
	up    atomic.Bool  // connected
	mem   []byte       // the server's memory where it is mapped; set before up
	using sync.RWMutex // calls that use the server's memory hold it for reading

	mu    sync.Mutex // guards the shadow
	books *rmalloc.Heap
}

func openHeap(ctx context.Context, p *pipe, t *team.Team) (h *heapEnd, err error) {
	err = p.enterHeap(ctx, t, clientsEnd, func() (stopper, error) {
		books, err := rmalloc.New(rmalloc.Config{Size: p.spec.heap, Blocks: p.options.blocks, Policy: p.policy})
		if err != nil {
			return nil, err
		}
		h = &heapEnd{heapSide: heapSide{pipe: p, gate: newGate()}, books: books}
		return h, nil
	})
	return h, err
}

// ready connects on first use, and returns why the heap cannot be used.
func (h *heapEnd) ready(ctx context.Context) error {
	if err := h.usable(); err != nil {
		return err
	}
	if !h.up.Load() {
		if err := h.gate.pass(ctx, h.comeUp); err != nil {
			return err
		}
	}
	if h.flag(goneFlag) != 0 {
		return errServerGone
	}
	return nil
}

func (h *heapEnd) comeUp(ctx context.Context) error {
	if h.up.Load() {
		return nil
	}
	_, deserted, err := h.join(ctx, true)
	if err != nil {
		return err
	}
	if deserted {
		return h.breaks(errServerGone)
	}
	if remote := h.remote(); remote != nil {
		h.mem = remote[cardSize:]
	}
	h.up.Store(true)
	return nil
}

func (h *heapEnd) alloc(ctx context.Context, n int) (rmalloc.Addr, error) {
	h.using.RLock()
	defer h.using.RUnlock()
	if err := h.ready(ctx); err != nil {
		return 0, err
	}
	if gone := h.fate(); gone != nil {
		return 0, gone
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	a, err := h.books.Alloc(n)
	if errors.Is(err, rmalloc.ErrFull) {
		return 0, ErrFull
	}
	return a, advise(err)
}

// owns returns an error unless the heap holds the block.
func (h *heapEnd) owns(a rmalloc.Addr) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, _, err := h.books.Range(a)
	return err
}

func (h *heapEnd) free(a rmalloc.Addr) error {
	if err := h.usable(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.books.Free(a)
}

// store and load reach the heap from offset at on.
func (h *heapEnd) store(ctx context.Context, at int, src []byte) error {
	h.using.RLock()
	defer h.using.RUnlock()
	if err := h.ready(ctx); err != nil {
		return err
	}
	if h.mem != nil {
		copy(h.mem[at:], src)
		return nil
	}
	return h.put(ctx, cardSize+at, src)
}

func (h *heapEnd) load(ctx context.Context, at int, dst []byte) error {
	h.using.RLock()
	defer h.using.RUnlock()
	if err := h.ready(ctx); err != nil {
		return err
	}
	if h.mem != nil {
		copy(dst, h.mem[at:])
		return nil
	}
	return h.get(ctx, cardSize+at, dst)
}

func (h *heapEnd) flushed(ctx context.Context) error {
	h.using.RLock()
	defer h.using.RUnlock()
	if err := h.ready(ctx); err != nil {
		return err
	}
	return h.flush(ctx)
}

func (h *heapEnd) stats() HeapStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.books.Stats()
}

// close says goodbye to the server. Nothing may be put behind that.
func (h *heapEnd) close(ctx context.Context) error {
	if h.closed.Swap(true) {
		return nil
	}
	h.gate.shut()
	h.using.Lock()
	defer h.using.Unlock()
	err := h.farewell(ctx)
	h.registry.exit(h, h)
	return err
}
