package rpipe

import "github.com/gopgas/gopgas/internal/rmalloc"

const lineSize = 64

// The flags of the writer's end, which the reader stores.
const (
	// creditFlag: how many tags are in the tag ring (high 32 bits), and how many
	// blocks were read (low 32), both counted over all laps.
	creditFlag = iota
	// endFlag: the reader puts nothing more here, and why.
	endFlag
	writerFlags
)

// These are the values of an endFlag.
const (
	drained  = 1 // the reader has read everything up to the close
	deserted = 2 // the reader was closed before
)

// The flags of the reader's end, which the writer stores: first the ring of
// notifications, one for each block that may be on its way and one for the close, then
//
//	wantedFlag(spec): a number that grows when the writer begins to wait, and
//	for what (wantsMemory, wantsWidth) in its low bits
//	byeFlag(spec): the writer puts nothing more here
func (s *spec) wantedFlag() int { return s.notifications() }

func (s *spec) byeFlag() int { return s.notifications() + 1 }

func (s *spec) readerFlags() int { return s.notifications() + 2 }

// notifications is how many places the ring has.
func (s *spec) notifications() int { return s.width + 1 }

const (
	wantsMemory = 1 << iota
	wantsWidth
	wantsBits = iota
)

// gaveUp is a wantedFlag that says that the writer's end is corrupt, and that it
// writes nothing more.
const gaveUp = ^uint64(0)

// The data of both ends: the card, the ring of tags and the heap, each at one of
// the ends or at both:
//
//	            writer's end               reader's end
//	card        yes                        yes
//	tag ring    deferred: the reader puts  immediate: the reader stores, the writer gets
//	heap        pull: the reader gets      push: the writer puts
func (s *spec) tagsAt() int { return cardSize }

func (s *spec) tagBytes() int {
	ring := rmalloc.NewTagRing(s.blocks)
	return line(8 * ring.Capacity())
}

func (s *spec) writerHeap() int {
	if s.sync == Deferred {
		return cardSize + s.tagBytes()
	}
	return cardSize
}

func (s *spec) readerHeap() int {
	if s.sync == Immediate {
		return cardSize + s.tagBytes()
	}
	return cardSize
}

// writerData is the size of the writer's data, readerData of the reader's.
func (s *spec) writerData() int {
	if s.pull {
		return s.writerHeap() + s.heap
	}
	return s.writerHeap()
}

func (s *spec) readerData() int {
	if s.pull {
		return s.readerHeap()
	}
	return s.readerHeap() + s.heap
}

func line(n int) int { return (n + lineSize - 1) &^ (lineSize - 1) }
