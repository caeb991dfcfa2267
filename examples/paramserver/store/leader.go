package store

import (
	"context"
	"math"

	"github.com/gopgas/gopgas/window"
)

// The kinds of the log's entries. An entry is
//
//	number << 32 | kind << 28 | worker << 14 | gradients of the step
const (
	applies      = 1 + iota
	replies      // a signal only
	repliesWeigh // weights, and a signal
	ends
)

const most = 1<<14 - 1 // workers

// A client holds the leader's knowledge of a worker.
type client struct {
	gone    bool // it has left, or it is dead
	left    bool // it waits until all have left
	clock   int  // its pushes
	pushed  bool // mode sync: its gradient waits for those of the others
	waits   bool // for a reply
	weights bool // and for weights in it
}

// Server 0 leads. Its loop calls commit for each signal of a worker, and dead for each death. The leader then writes
// entries of the log, by signals to the other servers, and all servers carry them out in one order:
//
//	worker: commit ---> leader: commit or dead, settle, enter ---> servers: carryOut ---> worker goes on

// A leader decides which gradients count, in which order, and when workers go on.
type leader struct {
	s       *server
	clients []client
	result  Result
}

// commit takes a worker's commit. One that comes after the worker's death does not count.
func (l *leader) commit(ctx context.Context, n int, what uint64) error {
	c := &l.clients[n]
	if c.gone {
		return nil
	}
	if what&leaves != 0 {
		c.gone, c.left = true, true
		l.result.Right += int(what >> 20 & 0xfffff)
		l.result.Tested += int(what >> 4 & 0xffff)
		return l.settle(ctx)
	}
	c.waits, c.weights = true, what&pulls != 0
	if what&pushes != 0 {
		c.clock++
		c.pushed = l.s.st.o.Mode == Sync
		if !c.pushed {
			if err := l.enter(ctx, applies, n, len(l.clients)); err != nil {
				return err
			}
		}
	}
	return l.settle(ctx)
}

// dead takes a worker out. Its commits count.
func (l *leader) dead(ctx context.Context, n int) error {
	if !l.clients[n].gone {
		l.clients[n].gone = true
		l.result.Dead++
	}
	l.clients[n].left = false
	return l.settle(ctx)
}

// settle replies to all workers that may go on, and ends the servers behind the last worker.
func (l *leader) settle(ctx context.Context) error {
	if err := l.step(ctx); err != nil {
		return err
	}
	slowest, living := math.MaxInt, 0
	for i := range l.clients {
		if c := &l.clients[i]; !c.gone {
			slowest, living = min(slowest, c.clock), living+1
		}
	}
	for n := range l.clients {
		c := &l.clients[n]
		lead := c.clock - slowest
		if c.gone || !c.waits || c.pushed || l.s.st.o.Mode == Async && lead > l.s.st.o.Staleness {
			continue
		}
		if l.s.st.o.Mode == Async {
			l.result.Lead = max(l.result.Lead, lead)
		}
		c.waits = false
		kind := replies
		if c.weights {
			kind = repliesWeigh
		}
		if err := l.enter(ctx, kind, n, 0); err != nil {
			return err
		}
	}
	if living == 0 {
		return l.end(ctx)
	}
	return nil
}

// end lets all workers go that have left, and then ends the servers.
func (l *leader) end(ctx context.Context) error {
	for n := range l.clients {
		if c := &l.clients[n]; c.left {
			c.left = false
			if err := l.enter(ctx, replies, n, 0); err != nil {
				return err
			}
		}
	}
	return l.enter(ctx, ends, 0, 0)
}

// step applies the gradients of mode sync once all living workers have pushed. A worker
// that was killed behind its commit takes part.
func (l *leader) step(ctx context.Context) error {
	pushed := 0
	for i := range l.clients {
		switch c := &l.clients[i]; {
		case c.pushed:
			pushed++
		case !c.gone:
			return nil
		}
	}
	for n := range l.clients {
		if c := &l.clients[n]; c.pushed {
			c.pushed = false
			if err := l.enter(ctx, applies, n, pushed); err != nil {
				return err
			}
		}
	}
	return nil
}

// enter writes an entry to the logs of the other servers, and carries it out here.
func (l *leader) enter(ctx context.Context, kind, n, count int) error {
	st, at := l.s.st, l.s.entries
	entry := (at+1)<<32 | uint64(kind)<<28 | uint64(n)<<14 | uint64(count)
	for s := 1; s < st.servers; s++ {
		if err := st.mem.PutNotify(ctx, s, 0, nil, window.Signal{Slot: st.logSlot(at), Value: entry}); err != nil {
			return err
		}
	}
	return l.s.carryOut(ctx, entry)
}
