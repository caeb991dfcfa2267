//go:build linux

package shm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A rank that takes memory or a connection back waits for requests that peers are executing:
//
//	this rank                              peer
//	key or connection becomes invalid      busy becomes odd
//	busy is odd: wait until it moves       key and connection are valid: copy
//	                                       busy becomes even
//
// Both sides store first and load then. So the peer sees the invalid word, or this rank the odd one
// (Dekker's argument). A stopped peer may keep busy odd for ever. Once patience is over, every caller
// gets errStopped: the request may yet change the memory.

// patience bounds all waits for one request together: the peer may be stopped.
const patience = 5 * time.Second

var errStopped = errors.New("a peer does not finish its request; is its process stopped?")

// An execution is a request that a peer is executing.
type execution struct {
	by    *remoteQP // nil: there was none
	busy  uint64    // by's, odd
	until time.Time // end of patience, from the first caller that waits
}

// executionOf returns what the peer's QP is executing. r may be nil.
func executionOf(r *remoteQP) execution {
	if r != nil {
		if busy := r.block.busy.Load(); busy&1 == 1 {
			return execution{by: r, busy: busy}
		}
	}
	return execution{}
}

// over reports whether the request has ended, or the peer's process.
func (e execution) over() bool {
	return e.by == nil || e.by.block.busy.Load() != e.busy || e.by.peer.dead.Load()
}

// is reports whether e and other are the same request.
func (e execution) is(other execution) bool {
	return e.by.block == other.by.block && e.by.nonce == other.by.nonce && e.busy == other.busy
}

// unfinished holds the executions that this rank waits for or has given up. If it has ended the connection,
// no QP knows the peer any more, but MR.Close waits for the request, too.
type unfinished struct {
	mu       sync.Mutex // held for moments
	patience time.Duration
	list     []execution
}

// add enters what r is executing, and returns it. A QP that ends its connection calls add behind the store
// that ends it, with mu held, which peerQP takes.
func (u *unfinished) add(r *remoteQP) execution {
	e := executionOf(r)
	if e.over() {
		return e
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = slices.DeleteFunc(u.list, execution.over)
	if i := slices.IndexFunc(u.list, e.is); i >= 0 {
		return u.list[i]
	}
	e.until = time.Now().Add(u.patience)
	u.list = append(u.list, e)
	return e
}

// left returns the executions that are not over.
func (u *unfinished) left() []execution {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = slices.DeleteFunc(u.list, execution.over)
	return slices.Clone(u.list)
}

// executions returns what peers are executing. It looks at the QPs first: one that ends its
// connection meanwhile has entered the execution into unfinished by then.
func (c *Context) executions() []execution {
	for i := range c.qps {
		if q := c.qps[i].Load(); q != nil {
			c.unfinished.add(q.peerQP())
		}
	}
	return c.unfinished.left()
}

// quiesce returns once e is over. It returns errStopped from e.until on, or an error if ctx ends first.
func (c *Context) quiesce(ctx context.Context, e execution) error {
	if e.over() {
		return nil
	}
	c.waiting.RLock()
	defer c.waiting.RUnlock()
	if c.life.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithDeadlineCause(ctx, e.until, errStopped)
	defer cancel()
	err := c.bell.Wait(ctx, e.over)
	if err != nil && c.life.Err() == nil {
		return fmt.Errorf("shm: waiting for process %d: %w", e.by.pid, err)
	}
	return nil
}
