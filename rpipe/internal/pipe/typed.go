package pipe

import (
	"fmt"
	"math"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/runtime"
)

// A TypedWriter is a Writer with its element type. Package rpipe defines its Writer as
// this type, so that packages below rpipe convert one to the other.
type TypedWriter[T any] struct{ end *Writer }

// End returns the writer's end without the element type.
func (w *TypedWriter[T]) End() *Writer { return w.end }

// A TypedReader is a Reader with its element type, as TypedWriter is for a Writer.
type TypedReader[T any] struct{ end *Reader }

// End returns the reader's end without the element type.
func (r *TypedReader[T]) End() *Reader { return r.end }

// AddReader gathers the end of a pipe from a rank. The end exists once o.Open returned nil.
func AddReader[T any](o *Opening, t *runtime.Team, writer int, opts []Option) *TypedReader[T] {
	r := &TypedReader[T]{}
	Add[T](o, "OpenReader", t, writer, false, opts, func(p *End) (err error) { r.end, err = NewReaderEnd(p); return err })
	return r
}

// AddWriter gathers the end of a pipe to a rank. The end exists once o.Open returned nil.
func AddWriter[T any](o *Opening, t *runtime.Team, reader int, opts []Option) *TypedWriter[T] {
	w := &TypedWriter[T]{}
	Add[T](o, "OpenWriter", t, reader, true, opts, func(p *End) (err error) { w.end, err = NewWriterEnd(p); return err })
	return w
}

// BytesOf returns the size of n elements. ErrRange: n is negative, or too large.
func BytesOf[T any](n int) (int, error) {
	size := element.Size[T]()
	if n < 0 || n > math.MaxInt/size {
		return 0, tooMany(n, size)
	}
	return n * size, nil
}

// tooMany returns the error of BytesOf.
func tooMany(n, size int) error {
	return fmt.Errorf("%d elements of %d bytes: %w", n, size, runtime.ErrRange)
}

// A Block is a piece of a pipe's heap. Package rpipe defines its Block as this type.
//
// Four words: the compiler keeps no larger struct in registers.
type Block[T any] struct {
	first *T
	n     int
	addr  rmalloc.Addr
	owner *End
}

// NewBlock returns the block of n elements at an address of an end's heap. mem begins
// with them.
func NewBlock[T any](owner *End, addr rmalloc.Addr, mem []byte, n int) Block[T] {
	return Block[T]{first: element.First[T](mem), n: n, addr: addr, owner: owner}
}

// Mem returns the block's elements.
func (b Block[T]) Mem() []T { return element.Slice(b.first, b.n) }

// Len returns the number of elements.
func (b Block[T]) Len() int { return b.n }

// Addr returns the address in the heap of its owner.
func (b Block[T]) Addr() rmalloc.Addr { return b.addr }

// Owner returns the end that the block is of.
func (b Block[T]) Owner() *End { return b.owner }

// Own returns the block's address if it is of this end.
func (b Block[T]) Own(p *End) (rmalloc.Addr, error) {
	if b.owner != p {
		return 0, ErrForeign
	}
	return b.addr, nil
}
