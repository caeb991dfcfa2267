package rpipe

import (
	"context"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// pushed are the blocks of a push pipe: they lie in this end's memory.
type pushed struct {
	r    *readerEnd
	list *rmalloc.Held
	mem  []byte
}

func newPushed(r *readerEnd) (*pushed, error) {
	list, err := rmalloc.NewHeld(r.spec.heap, r.spec.blocks)
	return &pushed{r: r, list: list, mem: r.local()[r.readerHeap():]}, err
}

func (p *pushed) open(_ context.Context, f rmalloc.Flag, _ bool) (rmalloc.Addr, []byte, error) {
	r := p.r
	r.mu.Lock()
	defer r.mu.Unlock()
	a, err := p.list.Take(f.Offset, f.Length)
	if err != nil {
		return 0, nil, r.breaks(err)
	}
	r.wasRead()
	return a, cut(p.mem, a.Offset(), f.Length), nil
}

func (p *pushed) free(a rmalloc.Addr) error {
	freed, err := p.list.Free(a)
	if err != nil {
		return err
	}
	return p.r.freed(freed)
}

func (p *pushed) held() int { return p.list.Len() }

func (p *pushed) borrows() bool { return false }

// cut returns n bytes of mem.
func cut(mem []byte, at, n int) []byte { return mem[at : at+n : at+n] }
