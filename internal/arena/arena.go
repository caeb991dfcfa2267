// Package arena hands out a rank's registered memory.
//
// If peers of this host may map the rank's memory, an arena has one sparse memfd
// of the heap's size. A block is a page-aligned piece of it. Alloc commits it, so
// that lack of memory is an error of Alloc and never a SIGBUS at the first store.
// If all peers share this process, the blocks lie on the Go heap.
//
//	Alloc: first fit, commit      Free: give the pages back, never unmap
//	                              Keep: give none back, for the next block of that size
//
// A block that its owner gave up, while other ranks may still write to it, is
// quarantined. It stays in use, and counts as such, until Release.
package arena

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Page is the granule of allocation, in bytes.
const Page = 4096

// ErrExhausted: Alloc found too little room or memory.
var ErrExhausted = driver.ErrExhausted

// ErrClosed: the arena was closed, at the end of the rank's job.
var ErrClosed = errors.New("job closed")

// An Arena allocates blocks. Its methods may be called from any goroutine.
type Arena struct {
	mu          sync.Mutex
	limit       int64
	used        int64
	quarantined int64         // part of used
	memfd       *memory.Memfd // nil: blocks lie on the Go heap
	ranges      freeList
	kept        kept
	closed      bool
}

// New returns an arena of limit bytes, in a memfd when shared. The arena reserves
// pages in reservations before it commits them.
func New(limit int64, shared bool, reservations *memory.Reservations) (*Arena, error) {
	limit = roundUp(limit)
	a := &Arena{limit: limit}
	if !shared {
		return a, nil
	}
	m, err := memory.NewMemfd("gopgas-heap", limit)
	if err != nil {
		if errors.Is(err, memory.ErrNoMemory) {
			err = fmt.Errorf("%w; raise the limit, or lower GRUN_HEAP (grun --heap)", err)
		}
		return nil, fmt.Errorf("heap of %s: %w", size(limit), err)
	}
	m.Share(reservations)
	a.memfd, a.ranges = m, freeList{{0, limit}}
	return a, nil
}

// A Block is a piece of an arena. A new one reads as zero.
type Block struct {
	driver.Memory
	off, n int64
	now    int64        // bytes that were committed at first
	grown  *atomic.Bool // more may be; nil: they are not

	extents *extents // behind the block; nil: none
}

// Alloc returns a zeroed block of n bytes, aligned to a page in shared arenas
// and to 64 bytes otherwise.
func (a *Arena) Alloc(n int) (Block, error) { return a.alloc(n, n, memory.Alignment) }

// AllocAligned is Alloc for a block that begins at a multiple of align, a power of two from
// 64 bytes to a page.
func (a *Arena) AllocAligned(n, align int) (Block, error) { return a.alloc(n, n, align) }

// AllocPart is Alloc for a block of which only the first now bytes occupy memory. No rank
// may touch the rest before [Arena.Complete].
func (a *Arena) AllocPart(n, now int) (Block, error) {
	b, err := a.alloc(n, now, memory.Alignment)
	b.grown = new(atomic.Bool)
	return b, err
}

// alloc reserves n bytes and commits the first now of them. Without a memfd the memory is Go's,
// aligned to align.
func (a *Arena) alloc(n, now, align int) (Block, error) {
	if now < 0 || n < now {
		return Block{}, fmt.Errorf("%w: allocation of %d bytes", driver.ErrInvalid, n)
	}
	want := roundUp(max(int64(n), 1))
	b := Block{n: want, now: min(roundUp(max(int64(now), 1)), want)}
	kept, err := a.reserve(&b, n)
	switch {
	case err != nil:
		return Block{}, err
	case a.memfd == nil:
		b.Memory = memory.HeapAligned(n, align)
		return b, nil
	case kept:
		clear(a.memfd.Bytes()[b.off : b.off+b.now])
	default:
		if err := a.commit(&b, b.now); err != nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.used -= b.n
			a.ranges.give(b.off, b.n)
			return Block{}, err
		}
	}
	b.Memory = a.memfd.Memory(b.off, int64(n))
	return b, nil
}

// reserve finds the place of a block for n bytes. It reports whether that is one of a kept block. It waits for no commit of
// another call.
func (a *Arena) reserve(b *Block, n int) (kept bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false, ErrClosed
	}
	if int64(n) > a.limit-a.used { // b.n is negative for the longest
		return false, a.exhausted(int64(n))
	}
	if a.memfd != nil {
		if b.off, kept = a.kept.take(b.n, b.now); !kept {
			b.off, err = a.find(b.n)
		}
	}
	if err == nil {
		a.used += b.n
	}
	return kept, err
}

// find returns n free bytes of the memfd.
func (a *Arena) find(n int64) (off int64, err error) {
	off, ok := a.ranges.take(n)
	if !ok {
		if err := a.dropKept(); err != nil {
			return 0, err
		}
		if off, ok = a.ranges.take(n); !ok {
			return 0, a.exhausted(n)
		}
	}
	return off, nil
}

// AllocOnDemand is AllocPart for memory that a device commits ahead of its peers' accesses.
func (a *Arena) AllocOnDemand(n, now int) (Block, error) {
	b, err := a.AllocPart(n, now)
	if err == nil {
		b.Demand = driver.Demand{Present: now, Commit: func(n int) error { return a.Complete(b, n) }}
	}
	return b, err
}

// Complete makes the first n bytes of a block occupy memory. It waits for no other call.
func (a *Arena) Complete(b Block, n int) error {
	if a.memfd == nil {
		return nil
	}
	if b.grown != nil {
		b.grown.Store(true)
	}
	return a.commit(&b, min(roundUp(int64(n)), b.n))
}

// commit makes the first n bytes of a block occupy memory.
func (a *Arena) commit(b *Block, n int64) error {
	switch err := a.memfd.Commit(b.off, n); {
	case errors.Is(err, driver.ErrClosed):
		return ErrClosed
	case err != nil:
		return fmt.Errorf("heap %w: %w", ErrExhausted, err)
	}
	return nil
}

// exhausted returns the error of a block of want bytes that has no room.
func (a *Arena) exhausted(want int64) error {
	given := ""
	if a.quarantined > 0 {
		given = fmt.Sprintf(" (%s of that quarantined: other ranks may still write there; Team.Free gives back the memory of calls that ended early)", size(a.quarantined))
	}
	return fmt.Errorf("heap %w: %s in all, %s in use%s, need %s in one piece; raise GRUN_HEAP (grun --heap)",
		ErrExhausted, size(a.limit), size(a.used), given, size(want))
}

// Free gives the block's memory back to the system. Remaining slices of it stay
// readable: they see zeros, or the content of a later block. After Close it does
// nothing.
func (a *Arena) Free(b Block) error {
	err := b.extents.giveBack()
	if a.memfd != nil {
		if bad := a.memfd.Punch(b.off, b.n); err == nil && !errors.Is(bad, driver.ErrClosed) {
			err = bad
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used -= b.n
	if a.memfd != nil {
		a.ranges.give(b.off, b.n)
	}
	return err
}

// Quarantine keeps a block that its owner gave up, and its extents, in use until Release: other
// ranks may still write to it.
func (a *Arena) Quarantine(b Block) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.quarantined += b.n
}

// Release frees a block that was quarantined.
func (a *Arena) Release(b Block) error {
	a.mu.Lock()
	a.quarantined -= b.n
	a.mu.Unlock()
	return a.Free(b)
}

// Quarantined returns the bytes of Used that are quarantined, without extents.
func (a *Arena) Quarantined() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.quarantined
}

// Used returns the allocated bytes, in whole pages.
func (a *Arena) Used() int64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// Close ends the arena; slices of its blocks stay readable, but their content
// means nothing.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed = true; a.memfd == nil {
		return nil
	}
	return a.memfd.Close()
}

func roundUp(n int64) int64 { return (n + Page - 1) &^ (Page - 1) }

// size returns a number of bytes for people, rounded up.
func size(n int64) string {
	switch {
	case n >= 1<<30 && n%(1<<30) == 0:
		return fmt.Sprintf("%d GiB", n>>30)
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", (n-1)>>20+1)
	}
	return fmt.Sprintf("%d KiB", (n-1)>>10+1)
}
