package pipe

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/rmalloc"
)

// pushed are the blocks of a push pipe: they lie in this end's memory.
type pushed struct {
	r    *Reader
	list *rmalloc.Held
	mem  []byte
	// Read puts blocks here that it takes without the mutex, each at its number. They
	// wait here until a call holds the mutex. Read advances returns.read; the mutex's
	// holder advances listed.
	recent [recentBlocks]recentBlock
	listed atomic.Uint64
}

// recentBlocks bounds the blocks that are read and not in the list.
const recentBlocks = 64

type recentBlock struct {
	addr   rmalloc.Addr
	length int
}

func newPushed(r *Reader) (*pushed, error) {
	list, err := rmalloc.NewHeld(r.Spec.Heap, r.Spec.blocks)
	return &pushed{r: r, list: list, mem: r.Data[r.readerHeap():]}, err
}

// Open takes a block into the list.
func (p *pushed) Open(_ context.Context, f rmalloc.Flag, _ bool) (rmalloc.Addr, []byte, error) {
	r := p.r
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if err := p.Enlist(); err != nil {
		return 0, nil, err
	}
	a, err := p.list.Take(f.Offset, f.Length)
	if err != nil {
		return 0, nil, r.Breaks(err)
	}
	p.listed.Add(1)
	r.wasRead()
	return a, cut(p.mem, a.Offset(), f.Length), nil
}

// HasRoom: a block lies in the room that it takes.
func (p *pushed) HasRoom() bool { return true }

// openQuietly is open without the mutex. It is false where there are too many
// recent blocks.
func (p *pushed) openQuietly(f rmalloc.Flag) (rmalloc.Addr, []byte, bool) {
	n := p.r.read.Load()
	if n-p.listed.Load() == recentBlocks {
		return 0, nil, false
	}
	a, err := p.list.Name(f.Offset, f.Length)
	if err != nil {
		return 0, nil, false
	}
	p.recent[n%recentBlocks] = recentBlock{a, f.Length}
	p.r.countQuietly(&p.r.Words[p.r.WantedFlag()])
	return a, cut(p.mem, a.Offset(), f.Length), true
}

// Enlist takes recent blocks into the list. Called with the mutex held.
func (p *pushed) Enlist() error {
	n := p.r.read.Load()
	for i := p.listed.Load(); i != n; i++ {
		b := &p.recent[i%recentBlocks]
		if err := p.list.Enter(b.addr, b.length); err != nil {
			return p.r.Breaks(err)
		}
	}
	p.listed.Store(n)
	return nil
}

// Free takes a block off the list, and its memory is the writer's again.
func (p *pushed) Free(a rmalloc.Addr) error {
	if err := p.Enlist(); err != nil {
		return err
	}
	freed, err := p.list.Free(a)
	if err != nil {
		return err
	}
	return p.r.freed(freed)
}

func (p *pushed) held() int {
	_ = p.Enlist() // it breaks the pipe of a hostile writer, as the next call reports
	return p.list.Len()
}

func (p *pushed) borrows() bool { return false }

// cut returns n bytes of mem.
func cut(mem []byte, at, n int) []byte { return mem[at : at+n : at+n] }
