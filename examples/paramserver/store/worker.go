package store

import (
	"context"

	"github.com/gopgas/gopgas/window"
)

// The kinds of a commit, in its lowest bits. A commit is
//
//	sequence << 40 | right << 20 | tested << 4 | kinds
//
// so each differs from the one before. right and tested are the result of a worker that leaves.
const (
	pushes = 1 << iota
	pulls
	leaves
)

// A Worker pushes gradients and pulls weights. One goroutine uses it.
type Worker struct {
	st             *Store
	n              int       // its number
	weights, grads []float32 // the model's own tensors
	pulled, toSend []float32 // where copies arrive, and from where they leave
	servers        []int     // ranks
	replies        []int     // their slots
	commits        uint64
	replied        uint64
	sent           []uint64   // requests to each server, or elements through its ring
	last           [][]uint64 // of each server: the last request in each buffer
	starts         []window.Request
	drilled        int // gradients of Drill
}

// newWorker divides this rank's window among weights, gradients and the copies that the options
// want.
func newWorker(st *Store, n int) *Worker {
	w := &Worker{st: st, n: n, sent: make([]uint64, st.servers)}
	mem := st.mem.Local()[st.workerBase():]
	w.weights, w.grads, mem = mem[:st.params], mem[st.params:2*st.params], mem[2*st.params:]
	w.pulled, w.toSend = w.weights, w.grads
	if st.copies >= 1 {
		w.pulled, mem = mem[:st.params], mem[st.params:]
	}
	if st.copies == 2 {
		w.toSend = mem[:st.params]
	}
	if st.o.Loose {
		w.grads = make([]float32, st.params)
		w.toSend = w.grads
	}
	for s := range st.servers {
		w.servers = append(w.servers, s)
		w.replies = append(w.replies, st.replySlot(s))
		w.last = append(w.last, make([]uint64, st.buffers))
	}
	return w
}

// Number returns the worker's number, from 0.
func (w *Worker) Number() int { return w.n }

// Weights returns the memory into which pulls go: the model's parameters.
func (w *Worker) Weights() []float32 { return w.weights }

// Grads returns the memory of the gradient to push.
func (w *Worker) Grads() []float32 { return w.grads }

// Push pushes the gradient and returns when all servers have applied it.
func (w *Worker) Push(ctx context.Context) error { return w.exchange(ctx, pushes) }

// Pull fills the weights with those of the servers.
func (w *Worker) Pull(ctx context.Context) error { return w.exchange(ctx, pulls) }

// PushPull pushes the gradient and pulls weights in which it counts.
func (w *Worker) PushPull(ctx context.Context) error { return w.exchange(ctx, pushes|pulls) }

// Leave says that this worker is done, and what it found: so many images of those tested
// were right. It returns when all workers have left or are dead, and so do the servers.
func (w *Worker) Leave(ctx context.Context, right, tested int) error {
	if err := w.commit(ctx, uint64(right)<<20|uint64(tested)<<4|leaves); err != nil {
		return err
	}
	return w.reply(ctx)
}

// exchange pushes gradients, pulls weights, or both, and waits for the servers' replies.
func (w *Worker) exchange(ctx context.Context, kinds uint64) error {
	if kinds&pushes != 0 {
		if err := w.push(ctx); err != nil {
			return err
		}
	}
	if err := w.commit(ctx, kinds); err != nil {
		return err
	}
	if err := w.reply(ctx); err != nil || kinds&pulls == 0 {
		return err
	}
	if w.st.o.Read {
		if err := w.read(ctx); err != nil {
			return err
		}
	}
	if w.st.copies >= 1 {
		w.st.copy(w.weights, w.pulled)
	}
	return nil
}

// reply waits for all servers.
func (w *Worker) reply(ctx context.Context) error {
	w.replied++
	_, _, err := w.st.wait(ctx, window.Until{Slots: w.replies, Condition: window.AtLeast, Value: w.replied, All: true, From: w.servers})
	return err
}

// commit tells the leader.
func (w *Worker) commit(ctx context.Context, what uint64) error {
	w.commits++
	return w.st.mem.PutNotify(ctx, 0, 0, nil, window.Signal{Slot: w.st.commitSlot(w.n), Value: w.commits<<40 | what})
}

// read gets the weights, or the servers' copies for this worker. No server changes them before this
// worker's next push or pull: in mode sync it applies no gradient until then, and else the copies stay.
func (w *Worker) read(ctx context.Context) error {
	w.starts = w.starts[:0]
	for _, k := range w.st.keys {
		at := k.at
		if w.st.sets > 0 {
			at += w.st.toSend(k.server, w.n)
		}
		r, err := w.st.mem.StartGet(ctx, k.server, at, w.pulled[k.from:k.to])
		if err != nil {
			return err
		}
		w.starts = append(w.starts, r)
	}
	return window.WaitAll(ctx, w.starts)
}
