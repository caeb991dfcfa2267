package pipe

import "github.com/gopgas/gopgas/internal/rmalloc"

const (
	lineShift = 6
	lineSize  = 1 << lineShift
)

// The flags of the writer's end, which the reader stores.
const (
	// CreditFlag: how many tags are in the tag ring (high 32 bits), and how many
	// blocks were read (low 32), both counted over all laps.
	CreditFlag = iota
	// EndFlag: the reader puts nothing more here, and why.
	EndFlag
	writerFlags
)

// These are the values of an EndFlag.
const (
	drained  = 1 // the reader has read everything up to the close
	deserted = 2 // the reader was closed before
)

// The flags of the reader's end, which the writer stores: first the ring of
// notifications, one for each block that may be on its way and one for the close, then
//
//	WantedFlag: a number that grows when the writer begins to wait, and
//	for what (WantsMemory, WantsWidth) in its low bits
//	byeFlag: the writer puts nothing more here
//
// In a push pipe on the fabric a notification has a cache line, its entry: the flag's word,
// and room for the bytes of a small block. In other pipes it is a flag alone.

// WantedFlag returns the number of that flag.
func (p *End) WantedFlag() int { return p.flagsBehind(0) }

// byeFlag returns the number of that flag.
func (p *End) byeFlag() int { return p.flagsBehind(1) }

// readerFlags returns how many flags the reader's end has.
func (p *End) readerFlags() int { return p.flagsBehind(2) }

// flagsBehind returns the number of flags up to so many behind the ring.
func (p *End) flagsBehind(n int) int { return p.Notification(p.Spec.notifications()) + n }

// entryShift returns the logarithm of how many flags an entry of the ring takes.
func (p *End) entryShift() uint8 {
	if _, ok := p.Layer.(fabricLayer); ok && !p.Spec.pull && !p.Spec.Served {
		return lineShift - 3
	}
	return 0
}

// Notification returns the flag of an entry of the ring.
func (p *End) Notification(entry int) int { return entry << p.entry }

// notifications is how many entries the ring has.
func (s *Spec) notifications() int { return s.Width + 1 }

const (
	WantsMemory = 1 << iota
	WantsWidth
	WantsBits = iota
)

// gaveUp is a WantedFlag that says that the writer's end is corrupt, and that it
// writes nothing more.
const gaveUp = ^uint64(0)

// The data of both ends: the card, the ring of tags and the heap, each at one of
// the ends or at both:
//
//	            writer's end               reader's end
//	card        yes                        yes
//	tag ring    deferred: the reader puts  immediate: the reader stores, the writer gets
//	heap        pull: the reader gets      push: the writer puts

// tagsAt is where the ring of tags begins in the data of the end that has one.
func (s *Spec) tagsAt() int { return CardSize }

// tagBytes is the size of the ring of tags.
func (s *Spec) tagBytes() int {
	ring := rmalloc.NewTagRing(s.blocks)
	return Line(8 * ring.Capacity())
}

// writerHeap is where the heap begins in the writer's data of a pull pipe, readerHeap in the reader's of
// a push pipe.
func (s *Spec) writerHeap() int {
	if s.sync == Deferred {
		return CardSize + s.tagBytes()
	}
	return CardSize
}

// readerHeap is as writerHeap says.
func (s *Spec) readerHeap() int {
	if s.sync == Immediate {
		return CardSize + s.tagBytes()
	}
	return CardSize
}

// writerData is the size of the writer's data, readerData of the reader's.
func (s *Spec) writerData() int {
	if s.pull {
		return s.writerHeap() + s.Heap
	}
	return s.writerHeap()
}

// readerData is as writerData says.
func (s *Spec) readerData() int {
	if s.pull {
		return s.readerHeap()
	}
	return s.readerHeap() + s.Heap
}

// Line returns n rounded up to whole cache lines.
func Line(n int) int { return (n + lineSize - 1) &^ (lineSize - 1) }
