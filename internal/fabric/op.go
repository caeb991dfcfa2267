package fabric

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/verbs/driver"
)

// An op is an operation under way on a queue pair. They are recycled: whoever
// waits for one gives it back and must not touch it afterwards.
type op struct {
	f      *Fabric
	peer   *Peer
	remote *Remote
	id     uint64
	wr     [2]driver.WorkRequest // a write and its flag are posted together
	seg    [2]driver.Segment
	value  [2]uint64Bytes // inline payload or result of seg
	done   atomic.Bool
	uses   atomic.Uint64 // counts recyclings: an old Request is told from a new one
	place  uint64        // among the peer's posts, of the request that tells
	status driver.Status
	err    error
	next   *op
}

type uint64Bytes [8]byte

// Ids of work requests that belong to no operation. An unsignalled request
// completes only when it fails; a signalled one without operation is there to
// make room in the queue.
const (
	unsignaledID = 0
	roomID       = ^uint64(0)
)

// opTable finds operations by the id of their work request.
type opTable struct {
	mu   sync.Mutex
	all  []*op
	free *op
}

// take returns a clean operation on r.
func (t *opTable) take(r *Remote) *op {
	t.mu.Lock()
	o := t.free
	if o == nil {
		o = &op{f: r.Peer.f}
		t.all = append(t.all, o)
		o.id = uint64(len(t.all))
	} else {
		t.free = o.next
	}
	t.mu.Unlock()
	o.peer, o.remote, o.next = r.Peer, r, nil
	o.status, o.err = driver.Success, nil
	o.done.Store(false)
	return o
}

func (t *opTable) give(o *op) {
	o.wr, o.seg = [2]driver.WorkRequest{}, [2]driver.Segment{}
	o.uses.Add(1)
	t.mu.Lock()
	o.next, t.free = t.free, o
	t.mu.Unlock()
}

func (t *opTable) find(id uint64) *op {
	t.mu.Lock()
	defer t.mu.Unlock()
	if id == unsignaledID || id > uint64(len(t.all)) {
		return nil
	}
	return t.all[id-1]
}

// post queues the first n work requests of o, waiting while the queue is full,
// and returns how many it queued. Whatever fails later is in the completion, or
// in the peer's error.
func (o *op) post(ctx context.Context, n int) (posted int, err error) {
	p := o.peer
	for {
		if err := p.Err(); err != nil {
			return posted, err
		}
		before := p.bind.completed.Load()
		took, err := p.tryPost(o, posted, n)
		posted += took
		switch {
		case posted == n:
			return n, nil
		case err == nil || errors.Is(err, driver.ErrQueueFull):
			p.Stats.stalls.Add(1)
			if err := p.f.awaitRoom(ctx, p, before); err != nil {
				return posted, err
			}
			if ctx.Err() != nil {
				return posted, context.Cause(ctx)
			}
		default:
			return posted, p.refused(ctx, err)
		}
	}
}

// tryPost posts what fits of o's requests from the given one up to n, keeping
// the peer's order and its signals.
func (p *Peer) tryPost(o *op, from, n int) (int, error) {
	wrs := o.wr[from:n]
	p.mu.Lock()
	defer p.mu.Unlock()
	if o.remote.retired != nil {
		return 0, o.remote.retired
	}
	for i := range wrs {
		p.sign(&wrs[i])
		if wrs[i].ID == o.id {
			o.place = p.posted.Load() + uint64(i) + 1
		}
	}
	took, err := p.qp.PostSend(wrs)
	for i := range wrs[:took] {
		p.account(&wrs[i])
	}
	return took, err
}

// sign has every so many requests complete, and applies a pending Order.
func (p *Peer) sign(wr *driver.WorkRequest) {
	if p.fence {
		wr.Flags |= driver.Fence
	}
	if wr.Flags&driver.Signaled == 0 && p.unsignaled+1 >= signalEvery {
		wr.Flags |= driver.Signaled
		wr.ID = roomID
	}
}

func (p *Peer) account(wr *driver.WorkRequest) {
	p.fence = false
	p.posted.Add(1)
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

// refused explains a post that the queue pair did not take: mostly since the
// connection broke, and then the verdict on the peer says more.
func (p *Peer) refused(ctx context.Context, err error) error {
	if errors.Is(err, driver.ErrState) || errors.Is(err, driver.ErrClosed) {
		return p.f.verdict(ctx, p, err.Error())
	}
	return fmt.Errorf("rank %d: %w", p.rank, err)
}

// settle returns what o came to and recycles it.
func (o *op) settle(ctx context.Context) error {
	err := o.await(ctx)
	o.f.ops.give(o)
	return err
}

// await waits for o's completion and returns what it came to. When ctx ends
// first it takes o's memory back from the provider.
func (o *op) await(ctx context.Context) error {
	err := o.f.Wait(ctx, o.over)
	if err != nil {
		o.cancel()
	}
	p, status, cause := o.peer, o.status, o.err
	switch {
	case err != nil:
		return err
	case !o.done.Load():
		return ErrClosed
	case status == driver.Success:
		return nil
	}
	detail := status.String()
	if cause != nil {
		detail = cause.Error()
	}
	if status == driver.Flushed || status == driver.RetryExceeded {
		return p.f.verdict(ctx, p, detail)
	}
	e := &RankError{Rank: p.rank, Kind: &StatusError{status}, Cause: detail}
	p.fail.CompareAndSwap(nil, e)
	return p.Err()
}

// cancel ends o early. Without help from the provider the only way is to end
// the connection, which flushes o and everything behind it.
func (o *op) cancel() {
	if !o.peer.qp.Cancel(o.id) {
		o.peer.lose(&RankError{Rank: o.peer.rank, Kind: ErrUnreachable,
			Cause: "connection ended by a cancelled transfer, which this provider cannot take back singly"})
	}
	// The completion is queued, or about to be: this wait is short.
	_ = o.f.Wait(context.Background(), o.over)
}

// over tells that no provider touches o's memory any more: it has completed, or
// the fabric is closed.
func (o *op) over() bool { return o.done.Load() || o.f.ended.Load() }

// A StatusError is the status that a work request failed with.
type StatusError struct{ Status driver.Status }

func (e *StatusError) Error() string { return e.Status.String() }

// Unwrap lets errors.Is find driver.ErrAccess behind a refused access.
func (e *StatusError) Unwrap() error {
	if e.Status == driver.RemoteAccess {
		return driver.ErrAccess
	}
	return nil
}
