package window

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/runtime"
)

// A Queue carries one-sided operations apart from all others of this rank: a queue of GASPI, a
// communication context of OpenSHMEM (1.5, section 9.5). Its operations have an order, a
// completion and connections of their own. So a goroutine that waits for its operations does not
// wait for those of others, and an Order holds up the queue's operations only.
//
// [Window.Through] returns a window whose operations the queue carries. Any goroutine may use a
// queue; one for each goroutine is the usual number. A rank has at most 256 at the same time.
type Queue struct {
	inner  *fabric.Queue
	home   *fabric.Fabric
	closed atomic.Bool
	// flushed: Close has completed the operations
	flushed atomic.Bool
	// updates of wide elements that the queue carries
	updates updates

	mu      sync.Mutex
	windows map[*core]func() // functions that end them
	carried []*core          // the same windows; no call changes the list
}

// NewQueue returns a queue of this rank, for windows of t and of all other teams of its job. Other
// ranks need not make one. It connects to a target when an operation first reaches the target.
// It returns [driver.ErrExhausted] if this rank has too many. Kind: local.
//
// [driver.ErrExhausted]: https://pkg.go.dev/github.com/gopgas/gopgas/verbs/driver#ErrExhausted
func NewQueue(t *runtime.Team) (*Queue, error) {
	if t == nil || team.Of(t) == nil {
		return nil, &OpError{Op: "NewQueue", Window: "(none)", Rank: -1, Target: -1, Index: -1, Err: ErrTeam}
	}
	home := team.Of(t).Fabric
	inner, err := home.NewQueue()
	if err != nil {
		return nil, &OpError{Op: "NewQueue", Window: "(none)", Rank: team.Of(t).Rank, Target: -1, Index: -1, Err: err}
	}
	return &Queue{inner: inner, home: home, windows: map[*core]func(){}}, nil
}

// Through returns w for operations that q carries: the same elements and slots. Lock is
// for w itself. Flush, FlushAll, Order and Fence of the result complete and order operations
// through q only. Those of w, Unlock, and [runtime.Job.FlushAll] leave out operations through q. Rings
// and waits are the same through both. A second call with the same queue returns the same window, and a [Part] of the
// result goes through q, too.
//
// The result ends with w or with q: operations then return [ErrFreed]. It returns [ErrFreed] if
// either has ended, [ErrTeam] if q belongs to another job, and [ErrPart] for attached memory. Kind:
// local.
func (w *Window[T]) Through(q *Queue) (*Window[T], error) {
	through, err := w.through(q)
	if err != nil {
		return nil, w.fail("Through", err)
	}
	return through, nil
}

// through returns the window whose operations go by a queue. It is made once for each queue,
// element type and window.
func (w *Window[T]) through(q *Queue) (*Window[T], error) {
	switch {
	case q == nil:
		return nil, fmt.Errorf("%w: no queue", ErrTeam)
	case q.home != w.team.Fabric:
		return nil, fmt.Errorf("%w: the queue belongs to another job", ErrTeam)
	case w.lease != nil:
		return nil, fmt.Errorf("attached memory goes through no queue: %w", ErrPart)
	case q.closed.Load():
		return nil, fmt.Errorf("%w: the queue is closed", ErrFreed)
	}
	key := partKey{typ: reflect.TypeFor[T](), queue: q, over: w.core}
	made, err := w.parts.obtain(key, func() ending {
		c := &core{segment: w.segment, name: fmt.Sprintf("%s through queue %d", w.name, q.inner.Number()), id: w.id, entryBits: w.entryBits,
			layout: w.layout, options: w.options, lengths: w.lengths, remotes: make([]atomic.Pointer[fabric.Remote], len(w.remotes)),
			bodies: make([]atomic.Pointer[fabric.Remote], len(w.bodies)), via: q, under: w.core}
		out := newWindow[T](c, w.outer)
		w.parts.queued = append(w.parts.queued, c)
		q.enter(c, func() { w.parts.drop(q) })
		return ending{out, func() { out.unmap(); q.forget(c) }}
	})
	if err != nil {
		return nil, err
	}
	return made.(*Window[T]), nil
}

// FlushAll completes this rank's earlier operations through q at their targets, in all windows
// (shmem_ctx_quiet). Of several errors it returns the first. As Flush, it does not fill the buffers of
// started gets. Kind: one-sided.
func (q *Queue) FlushAll(ctx context.Context) error {
	ctx = wait.Context(ctx)
	if q.closed.Load() {
		return q.fail("FlushAll", ErrFreed)
	}
	return q.fail("FlushAll", q.flush(ctx))
}

// flush flushes all windows that go by the queue. It returns the first error.
func (q *Queue) flush(ctx context.Context) (first error) {
	if mutant.QueueFlushesNothing {
		return nil
	}
	for _, c := range q.cores() {
		if err := c.flushReached(ctx); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Order has this rank's later operations through q take effect after its earlier ones at the same
// target, in all windows (shmem_ctx_fence). It completes nothing and does not wait. Kind: local.
func (q *Queue) Order() error {
	if q.closed.Load() {
		return q.fail("Order", ErrFreed)
	}
	for _, c := range q.cores() {
		for i := range c.remotes {
			if r := c.remotes[i].Load(); r != nil && r.Mem == nil {
				r.Peer.Order()
			}
		}
	}
	return nil
}

// Close completes the operations through q, ends its windows and closes its connections. It waits for
// updates by operators of the program whose contexts have ended; if ctx ends first, the connections stay
// until the job ends. A second call returns [ErrFreed]. Preconditions: no other goroutine is inside an operation through q, and
// each of its requests was waited for. An epoch that began through q goes on: Complete, Wait and Test need q
// no more, unless Close returns an error. A queue ends with its job, too. Kind: one-sided.
func (q *Queue) Close(ctx context.Context) error {
	ctx = wait.Context(ctx)
	if q.closed.Swap(true) {
		return q.fail("Close", ErrFreed)
	}
	if err := q.updates.await(ctx, q.home); err != nil {
		return q.fail("Close", err)
	}
	err := q.flush(ctx)
	q.flushed.Store(err == nil)
	q.mu.Lock()
	windows := q.windows
	q.windows, q.carried = map[*core]func(){}, nil
	q.mu.Unlock()
	for c, end := range windows {
		end()
		c.retire()
	}
	return q.fail("Close", errors.Join(err, q.inner.Close(ctx)))
}

// fail wraps an error of the queue's call.
func (q *Queue) fail(op string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Window: fmt.Sprintf("queue %d", q.inner.Number()), Rank: q.home.Rank(), Target: -1, Index: -1, Err: err}
}

// enter records a window that q carries, and the function that ends it.
func (q *Queue) enter(c *core, end func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.windows[c] = end
	q.carried = slices.Collect(maps.Keys(q.windows))
}

// forget takes out a window that ends by itself.
func (q *Queue) forget(c *core) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.windows, c)
	q.carried = slices.Collect(maps.Keys(q.windows))
}

// cores returns the windows that have operations on the queue.
func (q *Queue) cores() []*core {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.carried
}
