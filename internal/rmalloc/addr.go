package rmalloc

import (
	"fmt"
	"math/rand/v2"
)

const (
	// Granule is the unit of a heap, in bytes.
	Granule = 64
	// MaxHeap is the size of the largest heap, in bytes.
	MaxHeap = 1 << 30
	// MaxBlock is the length of the largest block, in bytes: the largest length
	// in a Flag.
	MaxBlock = MaxHeap - 1
	// MaxGranules is MaxHeap in granules.
	MaxGranules = MaxHeap / Granule
)

// An Addr names a block of one heap during one life of the block.
//
//	bits 40..63  granule where the block begins
//	bits  0..39  generation, never 0
//
// A heap counts its generations, one for each allocation, from a random start. So Heap and Held
// refuse the address of a block that is gone, for 2^40 further allocations. These take hours, at
// the speed of memory. Even then they accept only the one address whose generation repeats. They
// accept an address of another heap by chance only, about once in 2^40.
//
// The zero Addr names no block.
type Addr uint64

const (
	generationBits = 40
	generationMask = 1<<generationBits - 1
)

// Offset returns the offset of the block in the heap, in bytes.
func (a Addr) Offset() int { return int(a.granule()) * Granule }

// Generation returns the number of the allocation that made the block.
func (a Addr) Generation() uint64 { return uint64(a) & generationMask }

// String returns the offset in bytes and the generation: "0x1040#9f3a".
func (a Addr) String() string { return fmt.Sprintf("%#x#%x", a.Offset(), a.Generation()) }

func (a Addr) granule() uint32 { return uint32(a >> generationBits) }

// at returns the address of generation g at a granule.
func at(granule uint32, g generation) Addr {
	return Addr(granule)<<generationBits | Addr(g)
}

// A generation counts the allocations of one heap.
type generation uint64

func firstGeneration() generation { return generation(rand.Uint64() & generationMask) }

// next returns the generation behind g; it steps over 0, which marks holes. The step keeps
// the order of places in Recent.
func (g generation) next() generation {
	if g = (g + 1) & generationMask; g == 0 {
		return RecentBlocks
	}
	return g
}

// Granules returns the number of granules of a block of n bytes.
func Granules(n int) int { return max((n+Granule-1)/Granule, 1) }
