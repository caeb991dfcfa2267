package pipe

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// pulled are the blocks of a pull pipe: they lie at the writer. Where that is
// mapped, they are used in place; elsewhere they are fetched into memory of this
// end, and the writer's is free once that is done.
type pulled struct {
	r       *Reader
	list    *rmalloc.Held // used in place
	mem     []byte        // the writer's heap, mapped
	fetches *fetches      // fetched
}

// Open uses or fetches a block.
func (p *pulled) Open(ctx context.Context, f rmalloc.Flag, wait bool) (rmalloc.Addr, []byte, error) {
	if err := p.prepare(); err != nil {
		return 0, nil, err
	}
	if p.list != nil {
		return p.use(f)
	}
	return p.fetches.read(ctx, f, wait)
}

// prepare decides, when the writer is known, how its blocks are reached. Stats, Free and
// Close see that, too. Nothing of it changes later on, so that Read looks at it without the
// mutex.
func (p *pulled) prepare() (err error) {
	r := p.r
	switch {
	case p.list != nil || p.fetches != nil:
		return nil
	case !r.Joined.Load():
		return r.Fate() // blocks died with the writer
	}
	var list *rmalloc.Held
	var fetches *fetches
	remote := r.Remote()
	if remote != nil {
		list, err = rmalloc.NewHeld(r.Spec.Heap, r.Spec.blocks)
	} else {
		fetches, err = newFetches(r)
	}
	if err != nil {
		return err
	}
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if p.fetches = fetches; remote != nil {
		p.list, p.mem = list, remote[r.writerHeap():]
	}
	return nil
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

// HasRoom reports whether Open would not wait for room.
func (p *pulled) HasRoom() bool { return p.fetches == nil || p.fetches.hasRoom() }

// Free ends a block: the writer's, or a fetched one in this end's own memory.
func (p *pulled) Free(a rmalloc.Addr) error {
	switch {
	case p.list != nil:
		freed, err := p.list.Free(a)
		if err != nil {
			return err
		}
		return p.r.freed(freed)
	case p.fetches == nil:
		return fmt.Errorf("%w: %v", ErrStale, a)
	}
	return p.fetches.free(a)
}

func (p *pulled) held() int {
	switch {
	case p.list != nil:
		return p.list.Len()
	case p.fetches != nil:
		return p.fetches.heap.Live() - p.fetches.ahead
	}
	return 0
}

func (p *pulled) ahead() int {
	if p.fetches == nil {
		return 0
	}
	return p.fetches.ahead
}

func (p *pulled) giveUp() {
	if p.fetches != nil {
		p.fetches.giveUp()
	}
}
