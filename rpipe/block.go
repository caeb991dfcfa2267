package rpipe

import (
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
)

// A Block names a piece of a pipe's heap: at the writer one that Alloc took, at the
// reader one that has arrived. It is a value; copies are the same block.
type Block[T any] pipe.Block[T]

// Mem returns the block's elements. At the writer they lie in registered memory, in a push pipe to
// a mapped reader in the reader's memory. There, a block of up to 56 bytes or of 4 to 512 KiB lies
// in memory of the writer's own. Write copies its elements from there: a program that writes a part
// of such a block calls WriteFirst. At the reader they lie where they arrived, up to 56 bytes in
// memory of its own. After Write or Free the slice means nothing: a store into it may change
// another block.
func (b Block[T]) Mem() []T { return pipe.Block[T](b).Mem() }

// Len returns the number of elements. Kind: local.
func (b Block[T]) Len() int { return pipe.Block[T](b).Len() }

// Addr returns where the block lies. Kind: local.
func (b Block[T]) Addr() Addr { return Addr(pipe.Block[T](b).Addr()) }

// An Addr holds a block's place in its pipe's heap and the generation of the block
// there. The generation distinguishes a freed block from a later block at its place.
// No block has the zero Addr.
type Addr uint64

// Offset returns where in the heap the block begins, in bytes. Kind: local.
func (a Addr) Offset() int { return rmalloc.Addr(a).Offset() }

// Generation returns the number of the allocation that made the block. Kind: local.
func (a Addr) Generation() uint64 { return rmalloc.Addr(a).Generation() }

// String returns the offset and the generation. Kind: local.
func (a Addr) String() string { return rmalloc.Addr(a).String() }

// own returns the block's address if it is of this end.
func (b *Block[T]) own(p *pipe.End) (rmalloc.Addr, error) { return pipe.Block[T](*b).Own(p) }
