package wq

// A Ring is a queue of at most depth entries, oldest first. A place keeps its
// contents from one use to the next, so that an entry may own slices. A ring makes its
// places in chunks, as it reaches them. An empty ring starts again at its first place, so
// a queue of few entries at a time takes the memory of few.
type Ring[T any] struct {
	chunks       [][]T
	depth        int
	first, count int
	prepare      func(places []T) // may be nil
}

// chunk is the number of places that a ring makes at once.
const chunk = 64

// NewRing returns an empty ring. A ring of depth 0 holds nothing.
func NewRing[T any](depth int) Ring[T] { return Ring[T]{depth: depth} }

// NewPreparedRing returns an empty ring that calls prepare for new places.
func NewPreparedRing[T any](depth int, prepare func(places []T)) Ring[T] {
	return Ring[T]{depth: depth, prepare: prepare}
}

// Depth returns how many entries the ring holds at most.
func (r *Ring[T]) Depth() int { return r.depth }

// Len returns how many entries the ring holds.
func (r *Ring[T]) Len() int { return r.count }

// Room returns how many entries can be pushed.
func (r *Ring[T]) Room() int { return r.depth - r.count }

// At returns the ith entry from the oldest. Precondition: i < Len.
func (r *Ring[T]) At(i int) *T {
	if i += r.first; i >= r.depth {
		i -= r.depth
	}
	return r.place(i)
}

// place returns a place by its number. Precondition: its chunk is made.
func (r *Ring[T]) place(i int) *T { return &r.chunks[uint(i)/chunk][uint(i)%chunk] }

// First returns the oldest entry, or nil.
func (r *Ring[T]) First() *T {
	if r.count == 0 {
		return nil
	}
	return r.place(r.first)
}

// Last returns the newest entry, or nil.
func (r *Ring[T]) Last() *T {
	if r.count == 0 {
		return nil
	}
	return r.At(r.count - 1)
}

// Push adds the newest entry and returns it with its earlier contents.
// Precondition: Room > 0.
func (r *Ring[T]) Push() *T {
	i := r.first + r.count
	if i >= r.depth {
		i -= r.depth
	}
	if i >= len(r.chunks)*chunk {
		r.grow()
	}
	r.count++
	return r.place(i)
}

// grow makes the next chunk. Entries reach places in order, so it is that of the next place.
func (r *Ring[T]) grow() {
	made := len(r.chunks) * chunk
	places := make([]T, min(chunk, r.depth-made))
	if r.prepare != nil {
		r.prepare(places)
	}
	r.chunks = append(r.chunks, places)
}

// Unpush takes the n newest entries back. Precondition: n <= Len.
func (r *Ring[T]) Unpush(n int) { r.count -= n }

// Pop drops the n oldest entries. Precondition: n <= Len. An empty ring starts
// again at its first place, which is still in the cache.
func (r *Ring[T]) Pop(n int) {
	r.count -= n
	if r.first += n; r.first >= r.depth {
		r.first -= r.depth
	}
	if r.count == 0 {
		r.first = 0
	}
}

// Remove drops the ith entry from the oldest. Entries swap places, so that no two
// own the same slices. Precondition: i < Len.
func (r *Ring[T]) Remove(i int) {
	for ; i > 0; i-- {
		*r.At(i), *r.At(i - 1) = *r.At(i - 1), *r.At(i)
	}
	r.Pop(1)
}

// Retain drops the entries for which keep returns false.
func (r *Ring[T]) Retain(keep func(*T) bool) {
	kept := 0
	for i := range r.count {
		if keep(r.At(i)) {
			*r.At(i), *r.At(kept) = *r.At(kept), *r.At(i)
			kept++
		}
	}
	r.count = kept
}
