// Package blocks describes blocks of memory at regular or listed places, and copies between two
// such layouts. It counts places in units, which its callers turn into bytes.
package blocks

import (
	"errors"
	"fmt"
	"math/bits"
)

// MaxDims is the number of dimensions that a box may have.
const MaxDims = 4

// maxSpan bounds sizes and distances, so that no sum of them overflows.
const maxSpan = 1 << 58

// A Layout describes blocks. The zero Layout is one block as long as the other side of a
// transfer.
type Layout struct {
	kind  kind
	depth int8
	first int // place of the first block
	block int // units of each block
	dims  [MaxDims]dim
	// offsets and lengths belong to the caller. Without lengths all blocks have block units.
	offsets []int
	lengths []int
	bad     error
}

// A kind says how a Layout describes its blocks.
type kind uint8

const (
	whole   kind = iota
	regular      // blocks in dims, the fastest first
	listed
)

// A dim repeats all that the dims before it describe.
type dim struct{ n, stride int }

// Strided describes count blocks whose beginnings are stride apart.
func Strided(count, block, stride int) (l Layout) {
	if count < 0 || block < 0 {
		return refused("%d blocks of %d elements", count, block)
	}
	l = Layout{kind: regular, block: block}
	l.repeat(count, stride)
	return l
}

// Indexed describes blocks of one length at the offsets.
func Indexed(offsets []int, block int) Layout {
	if block < 0 {
		return refused("blocks of %d elements", block)
	}
	if len(offsets) == 0 || block == 0 {
		return Layout{kind: regular}
	}
	return Layout{kind: listed, block: block, offsets: offsets}
}

// Ragged describes blocks at the offsets, each of its own length.
func Ragged(offsets, lengths []int) Layout {
	if len(offsets) != len(lengths) {
		return refused("%d offsets and %d lengths", len(offsets), len(lengths))
	}
	if len(offsets) == 0 {
		return Layout{kind: regular}
	}
	return Layout{kind: listed, offsets: offsets, lengths: lengths}
}

// Box describes the part of an array of a shape that begins at start and has size elements
// in each dimension. The last dimension is the fastest.
func Box(shape, start, size []int) (l Layout) {
	n := len(shape)
	if n == 0 || n > MaxDims || len(start) != n || len(size) != n {
		return refused("a box of %d, %d and %d dimensions; it has 1 to %d", n, len(start), len(size), MaxDims)
	}
	l = Layout{kind: regular, block: 1}
	stride := 1
	for i := n - 1; i >= 0; i-- {
		if start[i] < 0 || size[i] < 0 || shape[i] < 0 || start[i] > shape[i]-size[i] {
			return refused("dimension %d has %d elements, the box takes %d from %d", i, shape[i], size[i], start[i])
		}
		l.repeat(size[i], stride)
		part, ok := product(start[i], stride)
		if stride, _ = product(stride, shape[i]); !ok || stride < 0 {
			return refused("an array of more than %d elements", maxSpan)
		}
		l.first += part
	}
	if l.block == 0 {
		l.first = 0
	}
	return l
}

// refused returns a layout that no transfer takes.
func refused(format string, args ...any) Layout {
	return Layout{bad: fmt.Errorf(format, args...)}
}

// repeat has l describe n copies of itself, stride apart. It merges what lies together.
func (l *Layout) repeat(n, stride int) {
	switch {
	case n == 0 || l.block == 0:
		l.block, l.depth = 0, 0
	case n == 1:
	case l.depth == 0 && stride == l.block:
		var ok bool
		if l.block, ok = product(l.block, n); !ok {
			*l = refused("more than %d elements", maxSpan)
		}
	case l.depth > 0 && l.continues(stride):
		d := &l.dims[l.depth-1]
		if n, ok := product(d.n, n); ok {
			d.n = n
			return
		}
		*l = refused("more than %d elements", maxSpan)
	default:
		l.dims[l.depth] = dim{n, stride}
		l.depth++
	}
}

// continues reports whether a repetition by stride goes on with the last dim.
func (l *Layout) continues(stride int) bool {
	d := l.dims[l.depth-1]
	next, ok := product(d.n, d.stride)
	return ok && next == stride
}

// product returns a*b, or -1 if it is beyond maxSpan.
func product(a, b int) (int, bool) {
	high, low := bits.Mul64(magnitude(a), magnitude(b))
	if high != 0 || low > maxSpan {
		return -1, false
	}
	return a * b, true
}

// magnitude returns the absolute value of any int.
func magnitude(a int) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

// Whole reports whether l is the zero Layout.
func (l *Layout) Whole() bool { return l.kind == whole && l.bad == nil }

// Block makes l one block of n units.
func (l *Layout) Block(n int) { *l = Layout{kind: regular, block: n} }

// errSize is the error of a layout whose units do not fit an int.
var errSize = errors.New("more elements than memory can hold")

// Measure returns the number of units of l, and the places from the first to behind the
// last. It returns an error for a layout that a constructor refused.
func (l *Layout) Measure() (size, from, to int, err error) {
	switch {
	case l.bad != nil:
		return 0, 0, 0, l.bad
	case l.kind == listed:
		return l.measureList()
	case l.block == 0:
		return 0, 0, 0, nil
	}
	size, from, to = l.block, l.first, l.first+l.block
	for _, d := range l.dims[:l.depth] {
		way, ok := product(d.n-1, d.stride)
		var fits bool
		if size, fits = product(size, d.n); !ok || !fits {
			return 0, 0, 0, errSize
		}
		if way < 0 {
			from += way
		} else {
			to += way
		}
	}
	return size, from, to, nil
}

// measureList returns the elements of a listed layout, and the range in which they lie. It refuses
// blocks with which a sum could overflow.
func (l *Layout) measureList() (size, from, to int, err error) {
	from = maxSpan
	for i, at := range l.offsets {
		n := l.length(i)
		if at < 0 || n < 0 || at > maxSpan || n > maxSpan || size > maxSpan {
			return 0, 0, 0, fmt.Errorf("block %d has %d elements from %d", i, n, at)
		}
		if n > 0 {
			size, from, to = size+n, min(from, at), max(to, at+n)
		}
	}
	return size, min(from, to), to, nil
}

// length returns the units of a listed block.
func (l *Layout) length(i int) int {
	if l.lengths == nil {
		return l.block
	}
	return l.lengths[i]
}
