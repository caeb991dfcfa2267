package pipe

import (
	"errors"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// placed are blocks that the reader uses where they lie. Those of a push pipe lie in this
// end's memory, those of a pull pipe at the mapped writer.
//
// Read puts blocks into recent without the mutex, and Free takes them out. The mutex's
// holder settles those that are left: it enters blocks into the list, and freed ranges into
// the tags. Read advances returns.read.
type placed struct {
	r      *Reader
	mem    []byte // the heap
	ring   []byte // the entries, where they have room for blocks
	list   *rmalloc.Held
	recent *rmalloc.Recent
	lines  lines
	swift  int // bytes of the largest block that Free takes out of recent; negative: none
}

// usePlaced has the reader use the blocks of a heap where they lie.
func (r *Reader) usePlaced(heap []byte) error {
	s := &r.Spec
	list, err := rmalloc.NewHeld(s.Heap, s.blocks)
	if err != nil {
		return err
	}
	p := &placed{r: r, mem: heap, list: list, recent: rmalloc.NewRecent(list), swift: -1}
	r.Mu.Lock()
	defer r.Mu.Unlock()
	r.placed, r.gather = p, p.settle
	if r.Words == nil {
		return nil
	}
	p.ring, r.quick = atomics.Bytes(r.Words), p
	if s.sync == Deferred && s.blocks >= 2*rmalloc.RecentBlocks {
		// Freed blocks that are not settled are fewer than those that press for an
		// announcement.
		p.swift = s.Heap / 4 / rmalloc.RecentBlocks
	}
	return nil
}

// open takes a block.
func (p *placed) open(f rmalloc.Flag) (rmalloc.Addr, []byte, error) {
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

// openQuietly is open without the mutex. It is false where there are too many recent
// blocks, and once another goroutine has called Close: the entry may be gone by then.
func (p *placed) openQuietly(f rmalloc.Flag, place int) (rmalloc.Addr, []byte, bool) {
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
func (p *placed) add(f rmalloc.Flag, place int) (rmalloc.Addr, []byte, error) {
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
func (p *placed) settle() error {
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
func (p *placed) freeQuietly(a rmalloc.Addr) bool {
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

// free takes a block out, and its memory is the writer's again.
func (p *placed) free(a rmalloc.Addr) error {
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
		p.lines.held.give(slot)
		if err := p.r.tags.Free(freed); err != nil {
			return p.r.Breaks(err)
		}
	}
	p.r.considerFreed()
	return nil
}

// held returns the number of blocks that were read and not freed. Called with the mutex held.
func (p *placed) held() int {
	_ = p.settle() // it breaks the pipe of a hostile writer, as the next call reports
	return p.list.Len()
}

// cut returns n bytes of mem.
func cut(mem []byte, at, n int) []byte { return mem[at : at+n : at+n] }
