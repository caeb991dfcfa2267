package window

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/team"
)

// Part returns the n elements of type U that begin at the byte offset in w's elements, at every
// rank. It is a window on the same memory: stores through one are loads through the other, and
// the operations of both on a target are completed, ordered and counted together. Locks,
// notification slots and Fence are those of w. So one window holds variables of several types.
// If w's lengths differ by rank, a rank whose elements end earlier has those of the n that fit.
//
// Ranks need not make the same parts. A second call with the same arguments returns the same part.
// A [Pointer] into a part leads to it at every rank that has made it. A part ends with w: only w
// has Free. Part returns [ErrRange] if no rank has the last element, and [ErrAlignment] if U cannot
// begin at the offset. It returns [ErrType] for an unusable U, and [ErrFreed]. Atomics of different
// widths on the same bytes are not atomic together. Kind: local.
func Part[U, T any](w *Window[T], offset, n int) (*Window[U], error) {
	part, err := partOf[U](w, offset, n)
	if err != nil {
		return nil, w.fail("Part", err)
	}
	return part, nil
}

// Variable returns the part of w that a variable in w.Local begins: one U at every rank. If T is a
// struct, its fields are variables at the same place of all ranks, like the static variables of an
// OpenSHMEM program:
//
//	type variables struct {
//		Count int64
//		Grid  [1000]float64
//	}
//	w, err := window.Allocate[variables](ctx, world, 1)
//	v := &w.Local()[0]
//	count, err := window.Variable(w, &v.Count) // *Window[int64] of one element
//	grid, err := window.Array(w, v.Grid[:])    // *Window[float64] of 1000
//
// It returns [ErrRange] if the variable lies elsewhere, and the errors of [Part]. Kind: local.
func Variable[U, T any](w *Window[T], v *U) (*Window[U], error) {
	return variable(w, "Variable", element.Slice(v, 1))
}

// Array is [Variable] for a slice of w.Local, such as an array: len(a) elements at every rank.
// Kind: local.
func Array[U, T any](w *Window[T], a []U) (*Window[U], error) { return variable(w, "Array", a) }

// variable returns the window over a variable that lies in this rank's Local.
func variable[U, T any](w *Window[T], op string, v []U) (*Window[U], error) {
	offset, ok := element.Offset(w.local, v)
	if !ok {
		return nil, w.fail(op, fmt.Errorf("%w: the variable does not lie in Local of this window", ErrRange))
	}
	part, err := partOf[U](w, offset, len(v))
	if err != nil {
		return nil, w.fail(op, err)
	}
	return part, nil
}

// partOf makes a part, or returns the one that an equal call has made.
func partOf[U, T any](w *Window[T], offset, n int) (*Window[U], error) {
	_, err := element.Describe[U]()
	switch {
	case err != nil:
		return nil, err
	case offset < 0 || n < 0:
		return nil, fmt.Errorf("%d elements from byte %d: %w [0, %d)", n, offset, ErrRange, w.extent())
	case offset%element.Align[U]() != 0:
		return nil, fmt.Errorf("byte %d, elements aligned to %d bytes: %w", offset, element.Align[U](), ErrAlignment)
	}
	c, err := w.partial(offset, n, element.Size[U](), element.Align[U]())
	if err != nil {
		return nil, err
	}
	typ := reflect.TypeFor[U]()
	name := fmt.Sprintf("%s/bytes %d to %d as %v", w.region, c.layout.elem0, c.layout.elem0+n*c.layout.size, typ)
	part, err := w.parts.obtain(partKey{elem0: c.layout.elem0, n: n, typ: typ, queue: c.via}, func() ending {
		c.id = team.ID(name)
		part := newWindow[U](c, w.outer)
		if c.via != nil {
			return ending{part, part.unmap} // pointers lead to the part that no queue carries
		}
		w.team.SetOwner(name, part)
		return ending{part, func() { part.unmap(); w.team.EndUse(name) }}
	})
	if err != nil {
		return nil, err
	}
	return part.(*Window[U]), nil
}

// partial returns the core of n elements of a size from the byte offset on.
func (c *core) partial(offset, n, size, align int) (*core, error) {
	for i := 0; c.array != nil && i < len(c.remotes); i++ {
		if c.array.starts[i]%align != 0 {
			return nil, fmt.Errorf("rank %d begins at byte %d, elements aligned to %d bytes: %w", i, c.array.starts[i], align, ErrAlignment)
		}
	}
	if c.lent != nil && c.lent.least < align {
		return nil, fmt.Errorf("memory of a rank is aligned to %d bytes, elements to %d bytes: %w", c.lent.least, align, ErrAlignment)
	}
	fits := func(target int) int { return min(n, max(0, c.length(target)*c.layout.size-offset)/size) }
	part := &core{segment: c.segment, remotes: c.remotes, bodies: c.bodies, via: c.via, layout: c.layout, name: fmt.Sprintf("%s[%d:]", c.name, offset)}
	part.layout.elem0 += offset
	part.layout.size, part.layout.elems = size, fits(c.team.Rank)
	most := part.layout.elems
	if c.lengths != nil {
		for target := range c.remotes {
			part.setLength(target, fits(target))
			most = max(most, fits(target))
		}
	}
	if most < n || offset > c.extent() {
		return nil, fmt.Errorf("%d elements of %d bytes from byte %d: %w [0, %d)", n, size, offset, ErrRange, c.extent())
	}
	return part, nil
}

// extent returns the bytes of elements at the rank that has the most.
func (c *core) extent() int {
	return slices.Max(append(c.lengths[:len(c.lengths):len(c.lengths)], c.layout.elems)) * c.layout.size
}

// parts holds a window, and the parts of it that this rank has made.
type parts struct {
	mu    sync.Mutex
	whole any // *Window[T]
	made  map[partKey]ending
	// queued are those that a queue carries and that are parts of no other.
	queued []*core
	ended  bool
}

// A partKey tells the parts of a window apart.
type partKey struct {
	elem0, n int
	typ      reflect.Type
	queue    *Queue
	over     *core // window that the queue carries, which may be a part; nil for a part itself
}

// An ending is a part as *Window[U], and the function that ends it.
type ending struct {
	part any
	end  func()
}

// obtain returns the part of a key, and makes it if there is none.
func (p *parts) obtain(key partKey, create func() ending) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, ErrFreed
	}
	e, ok := p.made[key]
	if !ok {
		e = create()
		if p.made == nil {
			p.made = map[partKey]ending{}
		}
		p.made[key] = e
	}
	return e.part, nil
}

// drop ends the parts that a queue carries.
func (p *parts) drop(q *Queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, e := range p.made {
		if key.queue == q {
			e.end()
			delete(p.made, key)
		}
	}
	p.queued = slices.DeleteFunc(p.queued, func(c *core) bool { return c.via == q })
}

// routes returns whole, and the parts through which further queues carry operations.
func (p *parts) routes(whole *core) []*core {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clone(p.queued), whole)
}

// end ends all parts, before their memory is given back.
func (p *parts) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.made {
		e.end()
	}
	p.made, p.ended = nil, true
}
