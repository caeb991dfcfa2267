package rpipe

import (
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A Block is a piece of a pipe's heap: at the writer one that was allocated, at
// the reader one that has arrived. It is a value; copies are the same block.
//
// Four words: the compiler keeps no larger struct in registers.
type Block[T any] struct {
	first *T
	n     int
	addr  rmalloc.Addr
	owner *pipe
}

// Mem returns the block's elements. At the writer they are the reader's memory
// itself where that is mapped, and registered memory elsewhere; at the reader
// they are where they arrived. After Write or Free the slice means nothing, and
// what is stored into it may end up in another block.
func (b Block[T]) Mem() []T { return element.Slice(b.first, b.n) }

// Len returns the number of elements.
func (b Block[T]) Len() int { return b.n }

// Addr returns where the block lies.
func (b Block[T]) Addr() Addr { return Addr(b.addr) }

// An Addr is the place of a block in its pipe's heap and the generation of what
// lies there: addresses of blocks that are gone are told from those of blocks
// that took their place. The zero Addr is no block's.
type Addr uint64

// Offset returns where in the heap the block begins, in bytes.
func (a Addr) Offset() int { return rmalloc.Addr(a).Offset() }

// Generation returns which allocation made the block.
func (a Addr) Generation() uint64 { return rmalloc.Addr(a).Generation() }

// String is the offset and the generation.
func (a Addr) String() string { return rmalloc.Addr(a).String() }

// own returns the block's address if it is of this end of this pipe.
func (b *Block[T]) own(p *pipe) (rmalloc.Addr, error) {
	if b.owner != p {
		return 0, ErrForeign
	}
	return b.addr, nil
}
