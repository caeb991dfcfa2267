package active

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/runtime"
)

// calls are this rank's calls that wait for replies.
type calls struct {
	mu      sync.Mutex
	last    uint64 // id
	waiting map[uint64]*call
	gone    []error // by rank: why this rank cannot call it any more
}

// A call waits for its reply. Only the goroutine that takes replies in sends to done.
type call struct {
	rank int
	name string      // of the handler
	done chan result // has room for one
}

// A result holds the reply or the error of a call.
type result struct {
	reply []byte
	err   error
}

// init begins without calls, in a team of so many ranks.
func (c *calls) init(ranks int) { c.waiting, c.gone = map[uint64]*call{}, make([]error, ranks) }

// reachable returns why a rank cannot be called.
func (c *calls) reachable(rank int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost(rank)
}

// lost is reachable for a goroutine that holds the mutex.
func (c *calls) lost(rank int) error {
	if uint(rank) >= uint(len(c.gone)) {
		return fmt.Errorf("%w [0, %d)", runtime.ErrRange, len(c.gone))
	}
	return c.gone[rank]
}

// begin enters a call of a rank, and returns it with its id.
func (c *calls) begin(rank int, name string) (*call, uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.lost(rank); err != nil {
		return nil, 0, err
	}
	c.last++
	k := &call{rank: rank, name: name, done: make(chan result, 1)}
	c.waiting[c.last] = k
	return k, c.last, nil
}

// forget removes a call, whose reply is then discarded.
func (c *calls) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// complete hands a rank's reply to the call that waits for it. It discards the reply to
// any other call.
func (c *calls) complete(from int, f *frame) {
	c.mu.Lock()
	k := c.waiting[f.id]
	if k == nil || k.rank != from {
		c.mu.Unlock()
		return
	}
	delete(c.waiting, f.id)
	c.mu.Unlock()
	r := result{reply: slices.Clone(f.payload)}
	if f.kind == frameFailure {
		r = result{err: &RemoteError{Rank: from, Handler: k.name, Kind: f.reason.err(), Text: string(f.payload)}}
	}
	k.done <- r
}

var errTargetClosed = fmt.Errorf("%w at that rank", rpipe.ErrClosed)

// fail fails all calls of a rank, and those to come. With io.EOF the rank has closed.
func (c *calls) fail(rank int, err error) {
	if errors.Is(err, io.EOF) {
		err = errTargetClosed
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone[rank] == nil {
		c.gone[rank] = err
	}
	for id, k := range c.waiting {
		if k.rank == rank {
			delete(c.waiting, id)
			k.done <- result{err: c.gone[rank]}
		}
	}
}

// takeReplies takes replies at any time: no reply waits for another call. It ends when all
// ranks, this one included, have sent their last reply, or with the job. Then no call
// waits for a handler that still runs.
func (e *Endpoint) takeReplies() {
	defer close(e.replied)
	defer e.end()
	for b, err := range e.replyIn.All(e.alive) {
		if err == nil {
			err = e.complete(b)
		}
		if err == nil {
			continue
		}
		if b.From >= 0 {
			e.calls.fail(b.From, err)
			continue
		}
		for rank := range e.calls.gone {
			e.calls.fail(rank, err)
		}
	}
}

// complete completes the calls whose replies a block holds, and frees the block.
func (e *Endpoint) complete(b fan.Arrival[byte]) (err error) {
	for rest := b.Mem(); len(rest) > 0 && err == nil; {
		var f frame
		if f, rest, err = decodeFrame(rest); err == nil {
			e.calls.complete(b.From, &f)
		}
	}
	return errors.Join(err, e.replyIn.Free(b.Block))
}
