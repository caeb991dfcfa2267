package active

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/runtime"
)

// calls are those that wait for their replies.
type calls struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*call
	gone    []error // why a rank cannot be called any more, by rank
}

type call struct {
	rank int
	done chan result // has room for one
}

// A result holds the reply or the error of a call.
type result struct {
	reply  []byte
	err    error
	remote bool // the target says so
}

func (r *result) explain(name string, rank int) error {
	if !r.remote {
		return fmt.Errorf("call of %q at rank %d: %w", name, rank, r.err)
	}
	return &RemoteError{Rank: rank, Handler: name, Kind: r.err, Text: string(r.reply)}
}

func (c *calls) init(ranks int) { c.waiting, c.gone = map[uint64]*call{}, make([]error, ranks) }

// reachable returns why a rank cannot be called.
func (c *calls) reachable(rank int) error {
	if uint(rank) >= uint(len(c.gone)) {
		return fmt.Errorf("%w [0, %d)", runtime.ErrRange, len(c.gone))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone[rank]
}

// begin enters a call.
func (c *calls) begin(rank int) (*call, uint64, error) {
	if err := c.reachable(rank); err != nil {
		return nil, 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.gone[rank]; err != nil {
		return nil, 0, err
	}
	c.last++
	k := &call{rank: rank, done: make(chan result, 1)}
	c.waiting[c.last] = k
	return k, c.last, nil
}

// forget removes a call: listen drops its reply.
func (c *calls) forget(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// settle hands a rank's reply to the call that waits for it, if that does still.
func (c *calls) settle(from int, f *frame) {
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
		r.err, r.remote = f.reason.err(), true
	}
	k.done <- r
}

var errCalledClosed = fmt.Errorf("%w at that rank", rpipe.ErrClosed)

// lose fails all calls of a rank, those to come among them. Without err the rank has
// closed.
func (c *calls) lose(rank int, err error) {
	if err == nil {
		err = errCalledClosed
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

// listen takes replies at any time: no reply waits for another call. It ends when all
// ranks, this one included, have sent their last reply, or with the job. Then no call
// waits for a handler that still runs.
func (a *Endpoint) listen() {
	defer close(a.heard)
	defer a.end()
	for b, err := range a.replyIn.All(a.alive) {
		if err == nil {
			err = a.hear(b)
		}
		if err == nil {
			continue
		}
		if b.From >= 0 {
			a.calls.lose(b.From, err)
			continue
		}
		for rank := range a.calls.gone {
			a.calls.lose(rank, err)
		}
	}
}

// hear takes the replies of a block, whose memory can be used again, whatever it held.
func (a *Endpoint) hear(b fan.Arrival[byte]) (err error) {
	for rest := b.Mem(); len(rest) > 0 && err == nil; {
		var f frame
		if f, rest, err = decodeFrame(rest); err == nil {
			a.calls.settle(b.From, &f)
		}
	}
	return errors.Join(err, a.replyIn.Free(b.Block))
}
