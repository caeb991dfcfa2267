package wq

import "github.com/gopgas/gopgas/verbs/driver"

// A CompletionRing is a ring of completions under a lock of its owner's.
type CompletionRing struct{ Ring[driver.Completion] }

// NewCompletionRing returns an empty ring.
func NewCompletionRing(depth int) CompletionRing {
	return CompletionRing{NewRing[driver.Completion](depth)}
}

// Take moves the oldest completions to wc and returns how many.
func (r *CompletionRing) Take(wc []driver.Completion) int {
	n := min(len(wc), r.Len())
	for i := range n {
		p := r.First()
		wc[i] = *p
		p.Err = nil
		r.Pop(1)
	}
	return n
}

// Purge drops the completions of a queue pair that was reset.
func (r *CompletionRing) Purge(qp uint32) {
	r.Retain(func(wc *driver.Completion) bool { return wc.QP != qp })
}
