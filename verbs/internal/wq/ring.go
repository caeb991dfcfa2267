package wq

// A Ring is a queue of at most depth entries, oldest first. A place keeps its
// contents from one use to the next, so that an entry may own slices. The places
// are made at the first Push: a queue that stays empty takes no memory.
type Ring[T any] struct {
	places       []T
	depth        int
	first, count int
}

// NewRing returns an empty ring. A ring of depth 0 holds nothing.
func NewRing[T any](depth int) Ring[T] { return Ring[T]{depth: depth} }

// Depth returns how many entries the ring holds at most.
func (r *Ring[T]) Depth() int { return r.depth }

// Len returns how many entries the ring holds.
func (r *Ring[T]) Len() int { return r.count }

// Room returns how many entries can be pushed.
func (r *Ring[T]) Room() int { return r.depth - r.count }

// At returns the ith entry from the oldest. Precondition: i < Len.
func (r *Ring[T]) At(i int) *T {
	if i += r.first; i >= len(r.places) {
		i -= len(r.places)
	}
	return &r.places[i]
}

// First returns the oldest entry, or nil.
func (r *Ring[T]) First() *T {
	if r.count == 0 {
		return nil
	}
	return &r.places[r.first]
}

// Places returns all places, used or not, for their owner to prepare.
func (r *Ring[T]) Places() []T {
	if r.places == nil {
		r.places = make([]T, r.depth)
	}
	return r.places
}

// Push adds the newest entry and returns it with its earlier contents.
// Precondition: Room > 0.
func (r *Ring[T]) Push() *T {
	if r.places == nil {
		r.Places()
	}
	r.count++
	return r.At(r.count - 1)
}

// Unpush takes the n newest entries back. Precondition: n <= Len.
func (r *Ring[T]) Unpush(n int) { r.count -= n }

// Pop drops the n oldest entries. Precondition: n <= Len. An empty ring starts
// again at its first place, which is still in the cache.
func (r *Ring[T]) Pop(n int) {
	r.count -= n
	if r.first += n; r.first >= len(r.places) {
		r.first -= len(r.places)
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
