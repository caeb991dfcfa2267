package pipe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// pulled are the blocks of a pull pipe: they lie at the writer. Where that is
// mapped, they are used in place; elsewhere they are fetched into memory of this
// end, and the writer's is free once that is done.
type pulled struct {
	r       *Reader
	list    *rmalloc.Held // used in place
	mem     []byte        // the writer's heap, mapped, or this end's own
	heap    *rmalloc.Heap // of what is fetched
	freed   atomic.Uint64 // fetched blocks that were freed
	full    bool          // there was no room for the block that comes next
	freedAt uint64        // freed, as room was looked for
	room    func() bool
}

func newPulled(r *Reader) *pulled {
	p := &pulled{r: r}
	p.room = p.HasRoom
	return p
}

// Open uses or fetches a block.
func (p *pulled) Open(ctx context.Context, f rmalloc.Flag, wait bool) (rmalloc.Addr, []byte, error) {
	if err := p.prepare(); err != nil {
		return 0, nil, err
	}
	if p.list != nil {
		return p.use(f)
	}
	return p.fetch(ctx, f, wait)
}

// prepare decides, when the writer is known, how its blocks are reached.
func (p *pulled) prepare() error {
	r := p.r
	switch {
	case p.mem != nil:
		return nil
	case !r.Joined.Load():
		return r.Fate() // blocks died with the writer
	}
	if remote := r.Remote(); remote != nil {
		list, err := rmalloc.NewHeld(r.Spec.Heap, r.Spec.blocks)
		if err == nil {
			p.decide(list, nil, remote[r.writerHeap():])
		}
		return err
	}
	heap, err := rmalloc.New(rmalloc.Config{Size: r.Spec.Heap, Blocks: r.Spec.blocks})
	if err != nil {
		return err
	}
	mem, err := r.Stage(r.Spec.Heap)
	if err == nil {
		p.decide(nil, heap, mem)
	}
	return err
}

// decide shows what prepare came to to Stats, Free and Close, too. Nothing of it
// changes later on, so that Read looks at it without the mutex.
func (p *pulled) decide(list *rmalloc.Held, heap *rmalloc.Heap, mem []byte) {
	p.r.Mu.Lock()
	defer p.r.Mu.Unlock()
	p.list, p.heap, p.mem = list, heap, mem
}

func (p *pulled) use(f rmalloc.Flag) (rmalloc.Addr, []byte, error) {
	r := p.r
	r.Mu.Lock()
	defer r.Mu.Unlock()
	a, err := p.list.Take(f.Offset, f.Length)
	if err != nil {
		return 0, nil, r.Breaks(err)
	}
	r.wasRead()
	return a, cut(p.mem, a.Offset(), f.Length), nil
}

// fetch waits until this end has room, too: what was fetched and not freed
// occupies it.
func (p *pulled) fetch(ctx context.Context, f rmalloc.Flag, wait bool) (rmalloc.Addr, []byte, error) {
	r := p.r
	a, err := p.make(ctx, f.Length, wait)
	if err != nil {
		return 0, nil, err
	}
	mem := cut(p.mem, a.Offset(), f.Length)
	if len(mem) > 0 {
		err = r.GetOwn(ctx, r.writerHeap()+f.Offset*rmalloc.Granule, mem)
	}
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if err != nil {
		return 0, nil, errors.Join(err, p.heap.Free(a)) // to be fetched again
	}
	r.wasRead()
	err = r.freed(rmalloc.Range{Offset: f.Offset, Count: rmalloc.Granules(f.Length)})
	return a, mem, err
}

// make takes a block of this end's own memory.
func (p *pulled) make(ctx context.Context, n int, wait bool) (rmalloc.Addr, error) {
	r := p.r
	for {
		r.Mu.Lock()
		a, err := p.heap.Alloc(n)
		p.full, p.freedAt = errors.Is(err, rmalloc.ErrFull), p.freed.Load()
		r.Mu.Unlock()
		if err == nil {
			return a, nil
		}
		if !errors.Is(err, rmalloc.ErrFull) {
			return 0, r.Breaks(err)
		}
		if !wait {
			return 0, err
		}
		if err := r.Await(ctx, nil, p.room); err != nil {
			return 0, fmt.Errorf("%w (while blocks that were read and not freed fill this end's memory)", err)
		}
		if err := r.Usable(); err != nil {
			return 0, err
		}
	}
}

// HasRoom is true once a Free may have made the room that was looked for.
func (p *pulled) HasRoom() bool {
	return !p.full || p.freed.Load() != p.freedAt || p.r.Usable() != nil
}

// Free ends a block: the writer's, or a fetched one in this end's own memory.
func (p *pulled) Free(a rmalloc.Addr) error {
	switch {
	case p.list != nil:
		freed, err := p.list.Free(a)
		if err != nil {
			return err
		}
		return p.r.freed(freed)
	case p.heap == nil:
		return fmt.Errorf("%w: %v", ErrStale, a)
	}
	if err := p.heap.Free(a); err != nil {
		return err
	}
	p.freed.Add(1)
	p.r.Ring() // a Read may wait for it
	return nil
}

func (p *pulled) held() int {
	switch {
	case p.list != nil:
		return p.list.Len()
	case p.heap != nil:
		return p.heap.Live()
	}
	return 0
}

func (p *pulled) borrows() bool { return p.list != nil }
