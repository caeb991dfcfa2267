package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A Queue is a further set of connections, one to each peer that this rank reaches through it.
// Flush and Order of its peers concern posts through the queue only. Memory that this process
// maps needs no connection: there a queue's peer is the rank's only one.
type Queue struct {
	f      *Fabric
	number int // of its connections, at both ends

	mu     sync.Mutex
	dials  map[int]*dial
	closed bool
}

// MaxQueues bounds the queues of a rank that are open at the same time.
const MaxQueues = 256

// NewQueue returns a queue. It connects on first use.
func (f *Fabric) NewQueue() (*Queue, error) {
	f.peersMu.Lock()
	defer f.peersMu.Unlock()
	if f.closed.Load() {
		return nil, ErrClosed
	}
	for i := range MaxQueues {
		if f.queues[i] == nil {
			f.queues[i] = &Queue{f: f, number: MaxConnections + i, dials: map[int]*dial{}}
			return f.queues[i], nil
		}
	}
	return nil, fmt.Errorf("%w: this rank has %d queues open; close some", driver.ErrExhausted, MaxQueues)
}

// Number returns the number of the queue, from 1 on. No other open queue of this rank has it.
func (q *Queue) Number() int { return q.number - MaxConnections + 1 }

// Remote returns r for posts through the queue. The first call for a peer connects, so it may
// wait. The attempt goes on when ctx ends.
func (q *Queue) Remote(ctx context.Context, r *Remote) (*Remote, error) {
	ctx = wait.Context(ctx)
	if r.Mem != nil || r.Peer.bind == nil || mutant.QueueSharesConnection {
		return r, nil
	}
	d, err := q.dial(r.Peer)
	if err != nil {
		return nil, err
	}
	select {
	case <-d.done:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if d.err != nil {
		return nil, d.err
	}
	over := &Remote{Peer: d.peer, Len: r.Len, addr: r.addr}
	if r.bounce == nil {
		return over, nil
	}
	var rep regionReply // the queue pair has a stage of its own: only one keeps its requests in order
	if err := q.f.call(ctx, d.peer.rank, "region", regionRequest{Provider: d.peer.bind.name, Name: r.bounce.Name, Stripe: q.number}, &rep); err != nil {
		return nil, err
	}
	return over.bounceWith(rep.Bounce), nil
}

// dial returns the dial of main's rank. It starts to make a connection if there is none.
func (q *Queue) dial(main *Peer) (*dial, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil, ErrClosed
	}
	d := q.dials[main.rank]
	if d != nil {
		return d, nil
	}
	if err := q.f.begin(); err != nil {
		return nil, err
	}
	d = &dial{done: make(chan struct{})}
	q.dials[main.rank] = d
	go func() {
		defer q.f.making.Done()
		defer close(d.done)
		if d.peer, d.err = q.connect(main); d.err != nil {
			q.mu.Lock()
			delete(q.dials, main.rank) // the next caller tries again
			q.mu.Unlock()
		}
	}()
	return d, nil
}

// connect makes the queue's connection to main's rank, over the same provider.
func (q *Queue) connect(main *Peer) (*Peer, error) {
	f := q.f
	p, err := f.connectOver(f.ctx, main.rank, main.bind, connectRequest{Stripe: q.number}, true)
	if errors.Is(err, driver.ErrLost) {
		err = f.blame(f.ctx, main.rank, err)
	}
	if err != nil {
		if mine := exhausted(f.cfg.Rank, err); mine != nil && !errors.As(err, new(*RankError)) {
			err = mine
		}
		return nil, f.health.orElse(main.rank, fmt.Errorf("connect queue %d to rank %d over %s: %w", q.Number(), main.rank, main.bind.name, err))
	}
	p.stripes.made = make(chan struct{}) // a queue has one connection to a peer
	close(p.stripes.made)
	main.stripes.enter(p, false)
	if gone := main.fail.Load(); gone != nil {
		p.lose(gone) // set before p was in the list
	}
	return p, nil
}

// peers returns the peers that the queue is connected to.
func (q *Queue) peers() (peers []*Peer) {
	q.mu.Lock()
	dials := make([]*dial, 0, len(q.dials))
	for _, d := range q.dials {
		dials = append(dials, d)
	}
	q.mu.Unlock()
	for _, d := range dials {
		if <-d.done; d.err == nil {
			peers = append(peers, d.peer)
		}
	}
	return peers
}

// Close ends the queue and its connections. Precondition: its posts are complete, and no
// goroutine posts through it any more.
func (q *Queue) Close(ctx context.Context) error {
	ctx = wait.Context(ctx)
	q.mu.Lock()
	before := q.closed
	q.closed = true
	q.mu.Unlock()
	if before || q.f.begin() != nil {
		return ErrClosed
	}
	defer q.f.making.Done()
	var errs []error
	for _, p := range q.peers() {
		errs = append(errs, q.disconnect(ctx, p))
	}
	q.f.peersMu.Lock()
	q.f.queues[q.number-MaxConnections] = nil
	q.f.peersMu.Unlock()
	return errors.Join(errs...)
}

// disconnect ends the connection to p at both ends. An end that the peer closes first is no
// failure of the peer, so p leaves the list beforehand.
func (q *Queue) disconnect(ctx context.Context, p *Peer) error {
	main, err := q.f.Peer(ctx, p.rank)
	if err == nil {
		main.stripes.leave(p)
	}
	if q.f.health.of(p.rank) == nil {
		// If this fails, the rank is gone, or its next connection replaces this one.
		_ = q.f.call(ctx, p.rank, "disconnect", disconnectRequest{Stripe: q.number}, &struct{}{})
	}
	return errors.Join(err, p.drop())
}
