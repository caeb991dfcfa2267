package window

import (
	"fmt"
	"math"
)

const lineSize = 64

// layout holds the offsets of the parts of a window's region, in bytes. They are the same at
// all ranks, also if ranks have different numbers of elements.
type layout struct {
	elems int // elements of this rank
	size  int // bytes of one
	slots int
	// attachments is the number of a rank's entries for attached memory.
	attachments int
	lock        int // state word, then the tickets, see lock_state.go
	watch       int // goroutines of this rank that wait for elements
	entries     int // a word for each rank that waits for this rank's lock
	grants      int // a word for each rank's lock: how often this rank got it behind a wait
	posted      int // one bit for each target that has begun an exposure epoch, see epoch.go
	completed   int // one bit for each origin that has ended its access epoch
	stripes     int // locks of wide elements, see stripes.go
	slot0       int
	attach0     int // words of attachments, see attach.go
	elem0       int
	total       int
}

// newLayout returns where the parts of a window's region lie. All members compute the same offsets
// from the options, except for the number of elements.
func newLayout(elems, size int, o *options, ranks int) (layout, error) {
	if elems < 0 {
		return layout{}, fmt.Errorf("%d elements: %w", elems, ErrRange)
	}
	if elems > (math.MaxInt64/2)/size {
		return layout{}, fmt.Errorf("%d elements of %d bytes: %w", elems, size, ErrRange)
	}
	l := layout{elems: elems, size: size, slots: o.slots, attachments: o.attachments}
	l.watch = l.lock + lineSize
	l.entries = l.watch + lineSize
	l.grants = line(l.entries + ranks*8)
	bits := (ranks + 63) / 64 * 8 // bytes with a bit for each rank
	l.posted = line(l.grants + ranks*8)
	l.completed = l.posted + bits
	l.stripes = line(l.completed + bits)
	l.slot0 = l.stripes + stripes*stripeSize
	l.attach0 = l.slot0 + o.slots*8
	l.elem0 = up(l.attach0+o.attachments*8, o.align)
	l.total = line(l.elem0 + elems*size)
	return l, nil
}

func line(n int) int { return up(n, lineSize) }

// up rounds n up to a multiple of align, a power of two.
func up(n, align int) int { return (n + align - 1) &^ (align - 1) }

func (l *layout) offset(index int) int { return l.elem0 + index*l.size }

func (l *layout) slot(i int) int { return l.slot0 + i*8 }

func (l *layout) attachment(i int) int { return l.attach0 + i*8 }
