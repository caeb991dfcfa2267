package pipe

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// pushed are the blocks of a push pipe: they lie in this end's memory.
//
// Read puts blocks into recent without the mutex, and Free takes them out. The mutex's
// holder settles those that are left: it enters blocks into the list, and freed ranges into
// the tags. Read advances returns.read.
type pushed struct {
	r      *Reader
	mem    []byte // this end's heap
	ring   []byte // the entries, where they have room for blocks
	list   *rmalloc.Held
	recent *rmalloc.Recent
	lines  lines
	swift  int // bytes of the largest block that Free takes out of recent; negative: none
}

func newPushed(r *Reader) (*pushed, error) {
	list, err := rmalloc.NewHeld(r.Spec.Heap, r.Spec.blocks)
	p := &pushed{r: r, mem: r.Data[r.readerHeap():], ring: atomics.Bytes(r.Words), list: list, recent: rmalloc.NewRecent(list), swift: -1}
	if s := &r.Spec; r.Words != nil && s.sync == Deferred && s.blocks >= 2*rmalloc.RecentBlocks {
		// Freed blocks that are not settled are fewer than those that press for an
		// announcement.
		p.swift = s.Heap / 4 / rmalloc.RecentBlocks
	}
	return p, err
}

// Open takes a block.
func (p *pushed) Open(_ context.Context, f rmalloc.Flag, _ bool) (rmalloc.Addr, []byte, error) {
	r := p.r
	if r.Words != nil {
		if a, mem, ok := p.openQuietly(f, r.at); ok {
			return a, mem, nil
		}
	}
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if p.recent.Full(r.read.Load()) {
		if err := errors.Join(p.settle(), r.Usable()); err != nil {
			return 0, nil, err
		}
		r.considerFreed()
	}
	a, mem, err := p.add(f, r.at)
	if err != nil {
		return 0, nil, r.Breaks(err)
	}
	r.wasRead()
	return a, mem, nil
}

// HasRoom: a block lies in the room that it takes.
func (p *pushed) HasRoom() bool { return true }

// openQuietly is Open without the mutex. It is false where there are too many recent
// blocks, and once another goroutine has called Close: the entry may be gone by then.
func (p *pushed) openQuietly(f rmalloc.Flag, place int) (rmalloc.Addr, []byte, bool) {
	if p.recent.Full(p.r.read.Load()) {
		return 0, nil, false
	}
	a, mem, err := p.add(f, place)
	if err != nil || p.r.Closed.Load() {
		return 0, nil, false
	}
	p.r.countQuietly(&p.r.Words[p.r.WantedFlag()])
	return a, mem, true
}

// add puts a block into recent, with the bytes from its entry if they are there.
func (p *pushed) add(f rmalloc.Flag, place int) (rmalloc.Addr, []byte, error) {
	n := p.r.read.Load()
	a, err := p.recent.Add(n, f.Offset, f.Length, f.Length <= p.swift)
	if err != nil {
		return 0, nil, err
	}
	if f.Kind != rmalloc.Inline {
		return a, cut(p.mem, a.Offset(), f.Length), nil
	}
	line := p.lines.at(p.recent.Place(n))
	copyLine(line[:], p.ring[8*(place+1):], f.Length)
	return a, cut(line[:], 0, f.Length), nil
}

// settle empties recent, unless the pipe is broken. Called with the mutex held.
func (p *pushed) settle() error {
	n := p.r.read.Load()
	for i := p.recent.Settled(); i != n && p.r.Broken.Load() == nil; i++ {
		a, freed, err := p.recent.Settle()
		switch {
		case err != nil:
		case a == 0:
			err = p.r.tags.Free(freed)
		default:
			p.lines.keep(p.recent.Place(i), p.list.Slot(a))
		}
		if err != nil {
			return p.r.Breaks(err)
		}
		p.recent.Step()
	}
	return nil
}

// freeQuietly is Free without the mutex. It is false, and does nothing, where there is more
// to do.
func (p *pushed) freeQuietly(a rmalloc.Addr) bool {
	r := p.r
	if r.Usable() != nil || !p.recent.Free(a) {
		return false
	}
	// Either these loads show that an announcement is to come, or the goroutine that has
	// announced sees the block.
	if !r.owing.Load() || r.waited() {
		r.Mu.Lock()
		defer r.Mu.Unlock()
		if p.settle() == nil {
			r.considerFreed()
		}
	}
	return true
}

// Free takes a block out, and its memory is the writer's again.
func (p *pushed) Free(a rmalloc.Addr) error {
	recent := p.recent.Free(a)
	if err := p.settle(); err != nil {
		return err
	}
	if !recent {
		slot := p.list.Slot(a)
		freed, err := p.list.Free(a)
		if err != nil {
			return err
		}
		p.lines.drop(slot)
		if err := p.r.tags.Free(freed); err != nil {
			return p.r.Breaks(err)
		}
	}
	p.r.considerFreed()
	return nil
}

func (p *pushed) held() int {
	_ = p.settle() // it breaks the pipe of a hostile writer, as the next call reports
	return p.list.Len()
}

func (p *pushed) ahead() int { return 0 }

func (p *pushed) giveUp() {}

// cut returns n bytes of mem.
func cut(mem []byte, at, n int) []byte { return mem[at : at+n : at+n] }
