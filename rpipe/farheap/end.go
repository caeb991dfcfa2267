package farheap

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// The two ends of a heap. Each has a card; behind the server's lies the heap. Each
// has one flag, the peer's last word.
const (
	goneFlag = 0
	flags    = 1
)

// The names of a heap's ends.
const (
	clientsEnd = "client"
	serversEnd = "server"
)

// enter opens one end of a heap.
func enter(ctx context.Context, p *pipe.End, t *team.Team, end string, begin func() error) error {
	p.Spec = pipe.Spec{Elem: "served memory", Size: 1, Heap: p.Spec.Heap, Served: true}
	pair := &pipe.Pairing{Team: t, Name: p.Name, Writer: p.Rank, Reader: p.Peer}
	if end == serversEnd {
		pair.Writer, pair.Reader = p.Peer, p.Rank
	}
	return p.Registry.Enter(ctx, pipe.Birth{Team: t, Name: pair.Key(end), Fail: unchanged, Make: func(incarnation int) (*pipe.End, error) {
		mine := pipe.Layout{Name: pair.Region(incarnation, clientsEnd), Flags: flags, Data: pipe.CardSize}
		theirs := pipe.Layout{Name: pair.Region(incarnation, serversEnd), Flags: flags, Data: pipe.CardSize + p.Spec.Heap}
		if end == serversEnd {
			mine, theirs = theirs, mine
		}
		if err := p.Hook(ctx, incarnation, mine, theirs, 0); err != nil {
			return nil, err
		}
		if err := begin(); err != nil {
			return nil, errors.Join(err, p.Release())
		}
		return p, nil
	}})
}

func unchanged(err error) error { return err }

// A client is a Heap without its element type.
type client struct {
	*side
	up    atomic.Bool  // connected
	mem   []byte       // the server's memory where it is mapped; set before up
	using sync.RWMutex // calls that use the server's memory hold it for reading

	mu    sync.Mutex // guards the shadow
	books *rmalloc.Heap
}

func openClient(ctx context.Context, p *pipe.End, t *team.Team) (h *client, err error) {
	err = enter(ctx, p, t, clientsEnd, func() error {
		books, err := rmalloc.New(rmalloc.Config{Size: p.Spec.Heap, Blocks: p.Options.Blocks, Policy: p.Policy})
		if err != nil {
			return err
		}
		h = &client{side: newSide(p), books: books}
		return nil
	})
	return h, err
}

// ready connects on first use, and returns why the heap cannot be used.
func (h *client) ready(ctx context.Context) error {
	if err := h.Usable(); err != nil {
		return err
	}
	if !h.up.Load() {
		if err := h.gate.pass(ctx, h.comeUp); err != nil {
			return err
		}
	}
	if h.Flag(goneFlag) != 0 {
		return errServerGone
	}
	return nil
}

func (h *client) comeUp(ctx context.Context) error {
	if h.up.Load() {
		return nil
	}
	_, deserted, err := h.Join(ctx, true)
	if err != nil {
		return err
	}
	if deserted {
		return h.Breaks(errServerGone)
	}
	if remote := h.Remote(); remote != nil {
		h.mem = remote[pipe.CardSize:]
	}
	h.up.Store(true)
	return nil
}

func (h *client) alloc(ctx context.Context, n int) (rmalloc.Addr, error) {
	h.using.RLock()
	defer h.using.RUnlock()
	if err := h.ready(ctx); err != nil {
		return 0, err
	}
	if gone := h.Fate(); gone != nil {
		return 0, gone
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	a, err := h.books.Alloc(n)
	if errors.Is(err, rmalloc.ErrFull) {
		return 0, ErrFull
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

// store and load reach the heap from offset at on.
func (h *client) store(ctx context.Context, at int, src []byte) error {
	h.using.RLock()
	defer h.using.RUnlock()
	if err := h.ready(ctx); err != nil {
		return err
	}
	if h.mem != nil {
		copy(h.mem[at:], src)
		return nil
	}
	return h.PutData(ctx, pipe.CardSize+at, src)
}

func (h *client) load(ctx context.Context, at int, dst []byte) error {
	h.using.RLock()
	defer h.using.RUnlock()
	if err := h.ready(ctx); err != nil {
		return err
	}
	if h.mem != nil {
		copy(dst, h.mem[at:])
		return nil
	}
	return h.Get(ctx, pipe.CardSize+at, dst)
}

func (h *client) flushed(ctx context.Context) error {
	h.using.RLock()
	defer h.using.RUnlock()
	if err := h.ready(ctx); err != nil {
		return err
	}
	return h.Flush(ctx)
}

func (h *client) stats() pipe.HeapStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.books.Stats()
}

// close tells the server that this end closes. Nothing may be put behind that.
func (h *client) close(ctx context.Context) error {
	if h.Closed.Swap(true) {
		return nil
	}
	h.gate.shut()
	h.using.Lock()
	defer h.using.Unlock()
	return h.depart(ctx)
}
