package bootstrap

import (
	"context"
	"sync"

	"github.com/gopgas/gopgas/internal/mutant"
)

// queueLimit bounds the bytes that wait in one queue before [queue.tryPut]
// refuses and [queue.waitPut] waits.
const queueLimit = 64 << 20

// A queue is a FIFO from any number of goroutines to one, which takes all items
// at once. Of the methods that add an item only waitPut blocks.
type queue[T any] struct {
	mu     sync.Mutex
	items  []T
	weight int
	closed bool
	more   chan struct{} // holds a token while there may be something to take
	room   chan struct{} // closed when the queue is emptied or closed; nil without a waiter
}

func newQueue[T any]() *queue[T] { return &queue[T]{more: make(chan struct{}, 1)} }

// put adds item even beyond the limit. It returns false on a closed queue.
func (q *queue[T]) put(item T, weight int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.add(item, weight)
}

// tryPut adds item unless the queue is full.
func (q *queue[T]) tryPut(item T, weight int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.full(weight) {
		return ErrOverflow
	}
	if !q.add(item, weight) {
		return ErrClosed
	}
	return nil
}

// waitPut adds item once there is room.
func (q *queue[T]) waitPut(ctx context.Context, item T, weight int) error {
	q.mu.Lock()
	for q.full(weight) {
		if q.room == nil {
			q.room = make(chan struct{})
		}
		room := q.room
		q.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		q.mu.Lock()
	}
	defer q.mu.Unlock()
	if !q.add(item, weight) {
		return ErrClosed
	}
	return nil
}

// full reports whether weight exceeds the limit; an empty queue takes one item of
// any weight.
func (q *queue[T]) full(weight int) bool {
	return !q.closed && q.weight > 0 && q.weight+weight > queueLimit
}

// add appends an item of a weight, unless the queue is closed. The caller holds the mutex.
func (q *queue[T]) add(item T, weight int) bool {
	if q.closed {
		return false
	}
	q.items = append(q.items, item)
	q.weight += weight
	q.signal()
	return true
}

// take waits for items and returns them all; it returns nil once the queue is
// closed and empty.
func (q *queue[T]) take() []T {
	for {
		q.mu.Lock()
		items, closed := q.items, q.closed
		q.items, q.weight = nil, 0
		q.release()
		q.mu.Unlock()
		if len(items) > 0 || closed {
			return items
		}
		<-q.more
		mutant.Hesitate(mutant.Message)
	}
}

// close refuses further items; the taker still gets the items in the queue.
func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.release()
	q.signal()
}

// discard closes the queue and drops its items.
func (q *queue[T]) discard() {
	q.mu.Lock()
	q.items, q.weight = nil, 0
	q.mu.Unlock()
	q.close()
}

// release wakes the goroutines that wait for room.
func (q *queue[T]) release() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

// signal wakes the goroutine that takes messages.
func (q *queue[T]) signal() {
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// each hands every item to f, in order, until the queue is closed.
func (q *queue[T]) each(f func(T)) {
	for items := q.take(); items != nil; items = q.take() {
		for _, item := range items {
			f(item)
		}
	}
}
