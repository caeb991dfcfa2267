package loggp

import (
	"container/heap"
	"context"
	"fmt"
	"iter"
)

// A replay runs one call at all ranks in virtual time. Each rank is a coroutine. The rank
// with the least clock runs until it has to wait or another rank's clock is less. So ranks
// use a host's ports in the order of virtual time.
type replay struct {
	machine *Machine
	ranks   []rank
	ready   queue
	ports   []port // by host
	trace   func(Message)
	result  Result
}

// A port is the link of a host to the others: one message after another leaves, and arrives.
type port struct{ out, in float64 }

// A Message is one message of a call, as a trace shows it.
type Message struct {
	From, To, Bytes int
}

// newReplay makes a replay of call at all ranks.
func newReplay(m *Machine, call func(context.Context, *rank) error) *replay {
	s := &replay{machine: m, ranks: make([]rank, m.Ranks), ports: make([]port, m.hosts())}
	for i := range s.ranks {
		r := &s.ranks[i]
		r.replay, r.id = s, i
		r.next, r.stop = iter.Pull(func(yield func(struct{}) bool) {
			r.yield = yield
			r.err = call(context.Background(), r)
			r.ended = true
		})
		s.ready = append(s.ready, r)
	}
	return s
}

// run ends when all ranks have returned, or when one of them fails.
func (s *replay) run() (err error) {
	defer func() {
		for i := range s.ranks {
			s.ranks[i].stop()
		}
	}()
	for len(s.ready) > 0 {
		r := heap.Pop(&s.ready).(*rank) //nolint:forcetypeassert // the queue holds ranks
		if _, more := r.next(); !more && r.err != nil {
			return fmt.Errorf("rank %d: %w", r.id, r.err)
		}
	}
	for i := range s.ranks {
		if r := &s.ranks[i]; !r.ended {
			return fmt.Errorf("%w: rank %d waits for rank %d, and all other ranks have returned or wait as well", errCircle, r.id, r.waitsFor)
		}
	}
	return nil
}

// A queue is a heap of ranks by their clocks. Ranks of equal clocks run in their order.
type queue []*rank

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].clock < q[j].clock || q[i].clock == q[j].clock && q[i].id < q[j].id
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(r any)   { *q = append(*q, r.(*rank)) } //nolint:forcetypeassert // see run
// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	r := (*q)[last]
	*q = (*q)[:last]
	return r
}
