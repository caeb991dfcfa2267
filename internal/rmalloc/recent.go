package rmalloc

import (
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
)

// RecentBlocks is how many blocks Recent has at most.
const RecentBlocks = 16

// Recent are the last blocks that a reader was notified of, ahead of Held. A reader frees
// most blocks soon; these never enter Held. Recent takes no lock. One goroutine calls Add,
// and publishes a count of the blocks that it has added. Any goroutine calls Free. One
// goroutine at a time settles blocks, below such a count.
type Recent struct {
	held    *Held
	blocks  [RecentBlocks]recent
	first   uint64        // generation of the first block
	settled atomic.Uint64 // blocks that are not here any more
}

// A recent is a block of Recent.
type recent struct {
	free   atomic.Uint64 // the address or notHere, until Free or Settle swaps it for 0
	name   Addr
	length int
}

// notHere is no block's address: its generation is 0.
const notHere = 1 << generationBits

// NewRecent returns Recent without blocks. held names its blocks.
func NewRecent(held *Held) *Recent { return &Recent{held: held} }

// Full reports whether there is no room for a block behind n others.
func (r *Recent) Full(n uint64) bool { return n-r.settled.Load() >= RecentBlocks }

// Place returns the place of the block behind n others, below RecentBlocks. It is that
// block's until the block is settled.
func (r *Recent) Place(n uint64) int { return int(n % RecentBlocks) }

// Add names a block of length bytes that begins at granule offset, behind n others, and
// takes it. here: Free finds it here, and not only in Held. Precondition: there is room.
// Errors are those of Held.Name.
func (r *Recent) Add(n uint64, offset, length int, here bool) (Addr, error) {
	a, err := r.held.Name(offset, length)
	if err != nil {
		return 0, err
	}
	if n == 0 {
		r.first = a.Generation()
	}
	b := &r.blocks[r.Place(n)]
	b.name, b.length = a, length
	if here {
		atomics.StoreRelease(&b.free, uint64(a))
	} else {
		atomics.StoreRelease(&b.free, notHere)
	}
	return a, nil
}

// Free frees a block. It is false, and does nothing, if it does not find the block here.
// The block's granules come back as it is settled.
func (r *Recent) Free(a Addr) bool {
	return a.Generation() != 0 && r.blocks[r.Place(a.Generation()-r.first)].free.CompareAndSwap(uint64(a), 0)
}

// Settled returns the number of the oldest block here, from 0.
func (r *Recent) Settled() uint64 { return r.settled.Load() }

// Settle enters the oldest block into Held, unless it was freed: then the address is 0, and
// Settle returns the block's granules. The block's place stays taken until Step. Errors are
// those of Held.Enter.
func (r *Recent) Settle() (a Addr, freed Range, err error) {
	b := &r.blocks[r.Place(r.settled.Load())]
	if b.free.Load() == 0 || b.free.Swap(0) == 0 {
		return 0, Range{int(b.name.granule()), Granules(b.length)}, nil
	}
	return b.name, Range{}, r.held.Enter(b.name, b.length)
}

// Step takes the oldest block out, which was settled.
func (r *Recent) Step() { atomics.StoreRelease(&r.settled, r.settled.Load()+1) }
