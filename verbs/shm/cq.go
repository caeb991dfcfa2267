package shm

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// CQ is a bounded queue of completions that any number of goroutines fill and
// empty without a lock (D. Vyukov's bounded MPMC queue). wq.Completions has a lock,
// which posters on several cores and the poller would hand around here, since a
// request completes within its post. Each slot has a turn:
//
//	turn == position              free for the push at position
//	turn == position + 1          holds the completion pushed at position
//	turn == position + len(slots) free for the push one lap later
type CQ struct {
	ctx   *Context
	depth uint64
	slots []slot // a power of two, at least depth
	ready func() bool

	overrun atomic.Bool
	closed  atomic.Bool

	_    [line]byte
	tail atomic.Uint64 // completions ever pushed
	_    [line - 8]byte
	head atomic.Uint64 // completions ever popped
	_    [line - 8]byte
}

type slot struct {
	turn  atomic.Uint64
	wc    driver.Completion
	owner *QP
	epoch uint64 // of owner: a RESET takes its completions out
}

// CreateCQ makes a queue that holds depth completions.
func (c *Context) CreateCQ(_ context.Context, depth int) (driver.CQ, error) {
	if c.ended.Load() {
		return nil, fmt.Errorf("shm: %w", driver.ErrClosed)
	}
	q := &CQ{ctx: c, depth: uint64(depth), slots: make([]slot, powerOfTwo(depth))}
	for i := range q.slots {
		q.slots[i].turn.Store(uint64(i))
	}
	q.ready = q.worthAPoll
	return q, nil
}

// powerOfTwo rounds up.
func powerOfTwo(n int) int {
	p := 1
	for p < n {
		p *= 2
	}
	return p
}

// push queues wc, or breaks the queue when it is full. If the queue has room and the
// slot's turn is old, a pop has moved the head and is about to store the turn.
func (q *CQ) push(wc *driver.Completion, owner *QP) {
	for {
		at := q.tail.Load()
		s := &q.slots[at&uint64(len(q.slots)-1)]
		full, turn := at-q.head.Load() >= q.depth, s.turn.Load()
		switch {
		case q.tail.Load() != at: // at was old: others pushed and popped meanwhile
		case full:
			q.overrun.Store(true)
			return
		case turn < at:
			wait.Moved(&s.turn, turn)
		case q.tail.CompareAndSwap(at, at+1):
			s.wc, s.owner, s.epoch = *wc, owner, owner.epoch
			s.turn.Store(at + 1)
			return
		}
	}
}

func (q *CQ) pop(wc *driver.Completion) bool {
	for {
		at := q.head.Load()
		s := &q.slots[at&uint64(len(q.slots)-1)]
		turn := s.turn.Load()
		if turn <= at {
			return false
		}
		if turn == at+1 && q.head.CompareAndSwap(at, at+1) {
			*wc = s.wc
			current := s.owner.live.Load() == s.epoch
			s.wc.Err, s.owner = nil, nil
			s.turn.Store(at + uint64(len(q.slots)))
			if current {
				return true
			}
		}
	}
}

// Poll takes completions, after the QPs whose peers rang have looked at them.
func (q *CQ) Poll(wc []driver.Completion) (int, error) {
	if q.ctx.doors.summary.Load() != 0 {
		q.ctx.progress()
	}
	for i := range wc {
		if !q.pop(&wc[i]) {
			return i, q.err(i)
		}
	}
	return len(wc), nil
}

// err is what an empty queue has to say: completions come before errors.
func (q *CQ) err(found int) error {
	switch {
	case found > 0:
		return nil
	case q.overrun.Load():
		return fmt.Errorf("shm: %w: more than %d completions", driver.ErrOverrun, q.depth)
	case q.closed.Load() || q.ctx.ended.Load():
		return fmt.Errorf("shm: CQ: %w", driver.ErrClosed)
	}
	return nil
}

// Wait sleeps on the context's bell.
func (q *CQ) Wait(ctx context.Context) error {
	q.ctx.waiting.RLock()
	defer q.ctx.waiting.RUnlock()
	if q.closed.Load() || q.ctx.ended.Load() {
		return fmt.Errorf("shm: CQ: %w", driver.ErrClosed)
	}
	return q.ctx.bell.Wait(ctx, q.ready)
}

// worthAPoll makes progress: whoever waits does.
func (q *CQ) worthAPoll() bool {
	if q.ctx.doors.summary.Load() != 0 {
		q.ctx.progress()
	}
	return q.head.Load() != q.tail.Load() || q.overrun.Load() || q.closed.Load() || q.ctx.ended.Load()
}

// Close wakes waiters; they and later calls get ErrClosed.
func (q *CQ) Close() error {
	q.closed.Store(true)
	q.ctx.ring()
	return nil
}
