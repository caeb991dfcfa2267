package store

import (
	"context"
	"fmt"
)

// DrillOptions returns options for a drill: servers add up what workers push, or their means in mode sync.
func DrillOptions(servers int, tensors []int, piece int, mode Mode, t Technique) Options {
	return Options{Servers: servers, Tensors: tensors, Piece: piece, Mode: mode, Rate: 1, Technique: t}
}

// Drill pushes and pulls n times without a model. All elements of this worker's c-th gradient are
// c. So servers that began with zeros show by each element which gradients they have applied.
// Unless whole, only the first and the last element of each key are, which costs less.
func (w *Worker) Drill(ctx context.Context, n int, whole bool) error {
	for range n {
		w.drilled++
		c := float32(w.drilled)
		for _, k := range w.st.keys {
			w.grads[k.from], w.grads[k.to-1] = c, c
			for i := k.from; whole && i < k.to; i++ {
				w.grads[i] = c
			}
		}
		if err := w.PushPull(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Check compares this server's weights after drills with the gradients that it applied: each
// whole, and nothing else.
func (st *Store) Check(whole bool) error {
	s := st.server
	want := float32(0)
	for _, n := range s.applied {
		want += float32(n*(n+1)) / 2
	}
	if st.o.Mode != Elastic {
		want /= float32(st.workers)
	}
	for _, i := range s.keys {
		k := st.keys[i]
		for at := k.at; at < k.at+k.len(); at++ {
			if !whole && at > k.at {
				at = k.at + k.len() - 1
			}
			if got := s.weights[at]; !(got-want < 1e-3*want+1e-6 && want-got < 1e-3*want+1e-6) || st.o.Mode == Elastic && got != want {
				return fmt.Errorf("server %d applied %v gradients of the workers, so each weight is %v; element %d of key %d is %v",
					s.n, s.applied, want, at-k.at, i, got)
			}
		}
	}
	return nil
}

// Applied returns how many gradients of each worker this server has applied.
func (st *Store) Applied() []int { return st.server.applied }
