package store

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A Result holds the leader's counts of one call of Serve.
type Result struct {
	Right, Tested int // images, of all workers that have left
	Dead          int // workers
	Lead          int // the most pushes that a worker went on ahead of the slowest one
}

// A server holds the weights of its keys.
type server struct {
	st      *Store
	n       int
	weights []float32
	toSend  [][]float32 // to each worker: the weights, or a copy
	grads   [][]float32 // of each worker, as servers apply them
	keys    []int       // its keys, by number
	leader  *leader     // nil at all but the first server
	watch   *watch
	events  chan event // from the goroutine that waits to the one that processes
	entries uint64     // of the log, so far
	applied []int      // gradients of each worker
	replied []uint64   // replies to each worker
	copied  []uint64   // elements that left each worker's ring
	ended   bool
}

// newServer makes server n with its share of the initial weights. Gradients arrive in its window
// where the options want no copy.
func newServer(st *Store, n int, init []float32) *server {
	s := &server{st: st, n: n, applied: make([]int, st.workers), replied: make([]uint64, st.workers),
		copied: make([]uint64, st.workers), events: make(chan event, 16)}
	mem, share := st.mem.Local(), st.shares[n]
	s.weights = mem[:share]
	if st.o.Loose {
		s.weights = make([]float32, share)
	}
	for w := range st.workers {
		toSend := s.weights
		if st.sets > 0 {
			toSend = mem[st.toSend(n, w):][:share]
		}
		s.toSend = append(s.toSend, toSend)
		grad := mem[st.received(n, w):][:share]
		if st.copies >= 1 || st.ring > 0 {
			grad = make([]float32, share) // bytes arrive elsewhere
		}
		s.grads = append(s.grads, grad)
	}
	for i, k := range st.keys {
		if k.server == n {
			s.keys = append(s.keys, i)
			copy(s.weights[k.at:], init[k.from:k.to])
		}
	}
	if n == 0 {
		s.leader = &leader{s: s, clients: make([]client, st.workers)}
	}
	s.watch = s.newWatch()
	return s
}

// Serve serves until all workers have left or are dead. Only the result of the first server has
// a meaning. It returns an error if another server is gone.
func (st *Store) Serve(ctx context.Context) (Result, error) {
	s := st.server
	s.ended = false
	if s.leader != nil {
		s.leader.result = Result{}
		for i := range s.leader.clients {
			s.leader.clients[i].gone = false
		}
	}
	err := s.process(ctx)
	if s.leader == nil {
		return Result{}, err
	}
	return s.leader.result, err
}

// process handles requests until all workers have ended.
func (s *server) process(ctx context.Context) error {
	if s.st.o.Apart {
		return s.processApart(ctx)
	}
	for !s.ended {
		e, err := s.watch.find(ctx)
		if err != nil {
			return err
		}
		s.watch.passed(e)
		if err := s.take(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// processApart has another goroutine wait for events. Events that it has found when
// the servers end stay in the channel, for the next Serve.
func (s *server) processApart(ctx context.Context) error {
	waiting, cancel := context.WithCancel(ctx)
	failed := make(chan error, 1)
	go func() { failed <- s.watch.pump(waiting, s.events) }()
	var err error
	for err == nil && !s.ended {
		select {
		case e := <-s.events:
			err = s.take(ctx, e)
		case err = <-failed:
			cancel()
			return err
		}
	}
	cancel()
	<-failed //nolint:errcheck // it was told to end
	return err
}

// take processes an event.
func (s *server) take(ctx context.Context, e event) error {
	st, slot := s.st, e.slot
	switch {
	case slot < 0:
		return s.leader.dead(ctx, st.workerAt(e.dead))
	case slot < st.workers:
		return s.leader.commit(ctx, slot, e.value)
	case slot < st.headSlot(0):
		return s.request(ctx, (slot-st.workers)/st.buffers, (slot-st.workers)%st.buffers, e.value)
	case slot < st.logSlot(0):
		return s.drain(ctx, slot-st.headSlot(0), e.value)
	}
	return s.carryOut(ctx, e.value)
}

// carryOut does what an entry of the log says.
func (s *server) carryOut(ctx context.Context, entry uint64) error {
	s.entries++
	n, count := int(entry>>14&most), int(entry&most)
	switch entry >> 28 & 15 {
	case applies:
		s.apply(n, count)
	case replies:
		return s.reply(ctx, n, false)
	case repliesWeigh:
		return s.reply(ctx, n, true)
	case ends:
		s.ended = true
	}
	return nil
}

// apply moves the weights by a worker's gradient, which is one of count.
func (s *server) apply(n, count int) {
	grad := s.grads[n]
	if s.st.copies >= 1 {
		s.st.copy(grad, s.st.mem.Local()[s.st.received(s.n, n):][:len(grad)])
	}
	rate := s.st.o.Rate
	if s.st.o.Mode != Elastic {
		rate /= float32(count)
	}
	for i, g := range grad {
		s.weights[i] += rate * g
	}
	s.applied[n]++
}

// reply puts the weights into the worker's tensors, and a signal behind them.
func (s *server) reply(ctx context.Context, n int, weights bool) error {
	st, rank := s.st, s.st.workerRank(n)
	s.replied[n]++
	if weights && st.sets > 0 {
		st.copy(s.toSend[n], s.weights)
	}
	for _, i := range s.keys {
		if !weights || st.o.Read {
			break // the worker gets them
		}
		k := st.keys[i]
		if err := st.mem.Put(ctx, rank, st.pulled()+k.from, s.toSend[n][k.at:][:k.len()]); err != nil {
			return unlessDead(err)
		}
	}
	return unlessDead(st.mem.PutNotify(ctx, rank, 0, nil, window.Signal{Slot: st.replySlot(s.n), Value: s.replied[n]}))
}

// request acknowledges a key's gradient, which has arrived; of a worker that only
// announced it, the server gets it.
func (s *server) request(ctx context.Context, n, b int, request uint64) error {
	st, rank := s.st, s.st.workerRank(n)
	if k := st.keys[request&0xffffffff]; st.o.Read {
		from := st.workerBase() + st.params + k.from
		to := st.received(s.n, n) + k.at
		if err := st.mem.Get(ctx, rank, from, st.mem.Local()[to:][:k.len()]); err != nil {
			return unlessDead(err)
		}
	}
	return unlessDead(st.mem.PutNotify(ctx, rank, 0, nil, window.Signal{Slot: st.ackSlot(s.n, b), Value: request}))
}

// drain copies elements out of a worker's ring, up to head. They are this server's
// keys, in their order.
func (s *server) drain(ctx context.Context, n int, head uint64) error {
	st, grad := s.st, s.grads[n]
	ring := st.mem.Local()[st.ringAt(s.n, n):][:st.ring]
	for s.copied[n] < head {
		from, to := ring[s.copied[n]%uint64(len(ring)):], grad[s.copied[n]%uint64(len(grad)):]
		m := min(head-s.copied[n], uint64(len(from)), uint64(len(to)))
		st.copy(to[:m], from[:m])
		s.copied[n] += m
	}
	return unlessDead(st.mem.PutNotify(ctx, st.workerRank(n), 0, nil, window.Signal{Slot: st.tailSlot(s.n), Value: head}))
}

// unlessDead drops the error of a worker that is gone: the leader takes it out.
func unlessDead(err error) error {
	if errors.Is(err, runtime.ErrRankDead) || errors.Is(err, runtime.ErrUnreachable) {
		return nil
	}
	return err
}
