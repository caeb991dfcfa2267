// Package store is the protocol of the parameter server: servers hold the parameters,
// workers push gradients and pull weights.
//
//	worker                 leader (server 0)                other servers
//	put gradient ------->  its keys                   --->  their keys
//	flush: all is there
//	commit ------------->  decides: apply, reply
//	                       log entry ---------------------> log entry
//	                       apply                            apply
//	weights        <-----  reply                      <---  reply
//
// A gradient has parts at several servers. It counts when the worker commits it at the leader, by
// one word, after all parts have arrived. The leader writes its decisions into the log of each
// other server. So all servers apply the same whole gradients in the same order. A worker that is
// killed has committed its gradient, or no server applies a part.
//
// Weights and gradients of a worker, and weights and received gradients of a server, lie in
// one window: bytes leave from the tensors and arrive in tensors. [Technique] turns that, and
// other techniques, off.
//
//	layout.go   keys, places in the window, slots
//	worker.go   pushes and pulls        push.go    the ways to push
//	server.go   events, the log         leader.go  decisions
//	watch.go    waits                  drill.go   gradients that show a lost or half one
package store

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A Mode says when servers apply gradients, and when they reply.
type Mode int

const (
	// Sync: when all living workers have pushed, servers apply the mean. (Li et al.,
	// "Scaling Distributed Machine Learning with the Parameter Server", 2014.)
	Sync Mode = iota
	// Async: servers apply each gradient as it comes. A worker waits while it is more than
	// Staleness pushes ahead of the slowest one. (Ho et al., "More Effective Distributed ML via
	// a Stale Synchronous Parallel Parameter Server", 2013.)
	Async
	// Elastic: workers train weights of their own, and push what pulls the servers' weights
	// toward theirs. (Zhang, Choromanska and LeCun, "Deep learning with Elastic Averaging SGD", 2015.)
	Elastic
)

// A Technique says how tensors move. The zero Technique is the fastest.
type Technique struct {
	Read    bool // servers get gradients and workers get weights, of a copy but in mode sync; else both are put
	Poll    bool // look for signals in a loop; else sleep until one comes
	Ring    bool // gradients pass through a ring buffer, as through a socket
	Apart   bool // a goroutine waits for signals, and another one processes them
	Copies  int  // user-space copies of each push and each pull: 0, 1 or 2
	Loose   bool // tensors lie in ordinary memory: a device registers them for each transfer
	Buffers int  // requests that a worker may have under way at a server; 0: a push takes no requests
}

// Options are the same at all ranks.
type Options struct {
	Servers   int   // the first ranks
	Tensors   []int // the ends of the tensors in the parameters
	Piece     int   // the most elements of a key: longer tensors have several
	Mode      Mode
	Staleness int
	Rate      float32 // the length of a step, in the direction of the gradient
	Technique
}

// A Store is one rank's part of a parameter server.
type Store struct {
	o Options
	layout
	job    *runtime.Job
	mem    *window.Window[float32]
	worker *Worker
	server *server
	copied atomic.Uint64
}

// New makes a parameter server whose weights are init. Kind: collective.
func New(ctx context.Context, job *runtime.Job, o Options, init []float32) (*Store, error) {
	team := job.World()
	if o.Read {
		o.Buffers = max(o.Buffers, 1) // a request says that there is something to read
	}
	if err := o.check(team.Size(), len(init)); err != nil {
		return nil, err
	}
	st := &Store{o: o, layout: newLayout(o, team.Size()), job: job}
	me := team.Rank()
	var err error
	st.mem, err = window.AllocateV[float32](ctx, team, st.elements(me), window.WithSlots(st.slots()))
	if err != nil {
		return nil, err
	}
	if me < o.Servers {
		st.server = newServer(st, me, init)
	}
	if w := st.workerAt(me); w >= 0 {
		st.worker = newWorker(st, w)
	}
	return st, team.Barrier(ctx)
}

// check refuses options that exclude each other.
func (o *Options) check(ranks, params int) error {
	switch {
	case o.Servers < 1 || o.Servers >= max(ranks, 2):
		return fmt.Errorf("%d servers of %d ranks: at least one rank must be a server, and one a worker", o.Servers, ranks)
	case len(o.Tensors) == 0 || o.Tensors[len(o.Tensors)-1] != params:
		return fmt.Errorf("tensors of %v elements for %d parameters", o.Tensors, params)
	case o.Read && o.Loose:
		return fmt.Errorf("reads need tensors in the window")
	case o.Ring && (o.Read || o.Buffers > 0):
		return fmt.Errorf("a ring buffer is written, and its requests are its bytes")
	case o.Copies < 0 || o.Copies > 2 || o.Copies > 0 && (o.Ring || o.Loose):
		return fmt.Errorf("copies: 0 to 2, without ring and without tensors in ordinary memory")
	}
	return nil
}

// Worker returns this rank's worker, nil if it has none.
func (st *Store) Worker() *Worker { return st.worker }

// Serves reports whether this rank is a server.
func (st *Store) Serves() bool { return st.server != nil }

// Workers returns the number of workers.
func (st *Store) Workers() int { return st.layout.workers }

// Copied returns the bytes that this rank's program has copied so far for pushes and pulls.
func (st *Store) Copied() uint64 { return st.copied.Load() }

// copy is the only copy of tensors in this package, and it counts.
func (st *Store) copy(dst, src []float32) {
	st.copied.Add(uint64(4 * copy(dst, src)))
}

// Free gives the memory back. Kind: collective.
func (st *Store) Free(ctx context.Context) error { return st.mem.Free(ctx) }

// InWindow reports whether the tensors that move lie in the window at this rank.
func (st *Store) InWindow() bool {
	local := st.mem.Local()
	in := func(tensor []float32) bool {
		return len(tensor) == 0 || within(local, tensor)
	}
	if w := st.worker; w != nil && !(in(w.weights) && in(w.grads)) {
		return false
	}
	if s := st.server; s != nil {
		for _, g := range s.grads {
			if !in(g) {
				return false
			}
		}
		return in(s.weights)
	}
	return true
}
