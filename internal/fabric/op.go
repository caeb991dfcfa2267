package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// An op is an operation under way on a queue pair. The fabric recycles ops: the goroutine
// that waits for an op gives it back and must not touch it afterward. If no goroutine
// waits, the op's completion gives it back.
type op struct {
	f       *Fabric
	bind    *binding
	peer    *Peer
	remote  *Remote
	id      uint64
	wr      [3]driver.WorkRequest // a write, its flag and its notice are posted together
	seg     [3]driver.Segment
	word    driver.Segment // 8 bytes of the op: an inline payload or a result
	second  uint64         // the second half of a result of 16 bytes
	old     []byte         // the caller's memory for the result of a started atomic
	lease                  // of the data
	message message
	byCPU   bool  // the target's CPU carries it out, and a response completes it
	ordered bool  // must not overtake earlier requests to the CPU
	alone   bool  // no goroutine will wait
	unfit   error // the reason why it cannot be posted
	phase   atomic.Uint32
	uses    atomic.Uint64 // counts recyclings, so that an old Request differs from a new one
	place   uint64        // among the peer's posts, of the signaled request
	status  driver.Status
	err     error
	next    *op
}

// The phases of an operation.
const (
	underWay  uint32 = iota
	done             // it has completed: the goroutine that waits gives it back
	leftAlone        // no goroutine waits any more: its completion gives it back
)

// These ids name work requests that belong to no operation. An unsignaled request
// completes only when it fails. A signaled one without an operation makes room in the
// queue.
const (
	unsignaledID = 0
	roomID       = ^uint64(0)
)

// newOp returns a clean operation on r, once no composers are in line. So a caller that
// waits for composers holds no stage, which a composer may need.
func (r *Remote) newOp(ctx context.Context) (*op, error) {
	if p := r.Peer; p.line.waits.Load() {
		if err := p.giveWay(ctx); err != nil {
			return nil, err
		}
	}
	return r.Peer.bind.ops.take(r), nil
}

// start posts the first n requests of o. The returned Request is complete if none of them
// tells of o's completion, or if no caller waits for it.
func (o *op) start(ctx context.Context, n int) (Request, error) {
	posted, err := o.post(ctx, n)
	switch {
	case !o.tells(posted):
		o.bind.ops.give(o)
	case err != nil:
		o.withdraw() // no request may outlive the call
	case o.alone:
		o.leave()
	default:
		return Request{o, o.uses.Load()}, nil
	}
	return Request{}, err
}

// tells reports whether one of the first n requests tells of o's completion.
func (o *op) tells(n int) bool {
	for i := range o.wr[:n] {
		if o.wr[i].ID == o.id || o.byCPU {
			return true
		}
	}
	return false
}

// post queues the first n work requests of o, and returns how many it queued. It waits
// for a queue pair, and while the queue is full. The completion, or the peer's error, reports a later failure.
func (o *op) post(ctx context.Context, n int) (posted int, err error) {
	p := o.peer
	for {
		if err := p.keepOrder(ctx, o); err != nil {
			return posted, err
		}
		if err := p.Err(); err != nil || o.unfit != nil {
			return posted, errors.Join(err, o.unfit)
		}
		if err := p.open(ctx); err != nil {
			return posted, err
		}
		before := p.bind.completed.Load()
		took, err := p.tryPost(o, posted, n)
		mutant.Hesitate(mutant.Operation)
		posted += took
		switch {
		case posted == n:
			return n, nil
		case errors.Is(err, errCrowded): // another goroutine posted first
		case err == nil || errors.Is(err, driver.ErrQueueFull):
			p.Stats.stalls.Add(1)
			if err := p.f.awaitRoom(ctx, p, before); err != nil {
				return posted, err
			}
			if wait.Context(ctx).Err() != nil {
				return posted, context.Cause(ctx)
			}
		default:
			return posted, p.refused(ctx, err)
		}
	}
}

// tryPost posts as many of o's requests between from and n as fit. It keeps the peer's
// order and has enough requests signaled.
func (p *Peer) tryPost(o *op, from, n int) (int, error) {
	wrs := o.wr[from:n]
	p.mu.Lock()
	defer p.mu.Unlock()
	if retired := o.remote.origin().retired; retired != nil {
		return 0, retired
	}
	if p.bind.outstanding.Load() >= p.bind.room {
		return 0, driver.ErrQueueFull
	}
	unsignaled := p.unsignaled
	for i := range wrs {
		unsignaled = p.sign(&wrs[i], unsignaled)
		if wrs[i].ID == o.id {
			o.place = p.posts() + uint64(i) + 1
		}
	}
	if o.byCPU {
		if p.requests.Load()-p.responses.Load() >= p.bind.maxRequests() {
			return 0, errCrowded
		}
		p.requests.Add(1) // before the response can arrive
	}
	took, err := p.qp.Load().PostSend(wrs)
	if o.byCPU && took == 0 {
		p.requests.Add(^uint64(0))
	}
	for i := range wrs[:took] {
		p.account(&wrs[i])
	}
	return took, err
}

// sign makes one request signaled after a run of unsignaled ones, and applies a pending
// Order. It takes and returns the length of the run.
func (p *Peer) sign(wr *driver.WorkRequest, unsignaled int) int {
	if p.fence {
		wr.Flags |= driver.Fence
	}
	if wr.Flags&driver.Signaled == 0 && unsignaled+1 >= p.bind.signalEvery() {
		wr.Flags |= driver.Signaled
		wr.ID = roomID
	}
	if wr.Flags&driver.Signaled != 0 {
		return 0
	}
	return unsignaled + 1
}

// account counts a request that the queue pair has taken. Precondition: p.mu is held.
func (p *Peer) account(wr *driver.WorkRequest) {
	p.fence = false
	atomics.StoreRelease(&p.posted, p.posts()+1) // pairs with the load in posts
	if wr.Op == driver.OpSend {
		p.Stats.sends.Add(1)
	}
	if wr.Flags&driver.Signaled == 0 {
		p.unsignaled++
		return
	}
	p.unsignaled = 0
	p.bind.outstanding.Add(1)
}

// refused explains why the queue pair did not take a post. Mostly the connection broke,
// and the verdict on the peer then says more.
func (p *Peer) refused(ctx context.Context, err error) error {
	if errors.Is(err, driver.ErrState) || errors.Is(err, driver.ErrClosed) {
		return p.f.verdict(ctx, p, err.Error())
	}
	return fmt.Errorf("rank %d: %w", p.rank, err)
}

// A StatusError holds the status of a failed work request.
type StatusError struct{ Status driver.Status }

func (e *StatusError) Error() string { return e.Status.String() }

// Unwrap lets errors.Is find driver.ErrAccess behind a refused access.
func (e *StatusError) Unwrap() error {
	if e.Status == driver.RemoteAccess {
		return driver.ErrAccess
	}
	return nil
}
