package fabric

import (
	"context"
	"errors"
	"time"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/verbs/driver"
)

// settle returns the result of o and gives o back.
func (o *op) settle(ctx context.Context) error {
	if err := o.await(ctx); err != nil {
		return err
	}
	o.fillBorrowed()
	if n := len(o.old); n > 8 {
		atomics.PutUint(o.old[:8], o.loadResult())
		atomics.PutUint(o.old[8:], o.second)
	} else if n > 0 {
		atomics.PutUint(o.old, o.loadResult())
	}
	o.bind.ops.give(o)
	return nil
}

// await waits for o's success. If it fails, it has given o back. If ctx ends first, the
// operation uses no memory of the caller's any more.
func (o *op) await(ctx context.Context) error {
	if err := o.f.Wait(ctx, o.over); err != nil {
		o.withdraw()
		return err
	}
	if o.phase.Load() == done && o.status == driver.Success {
		return nil
	}
	if o.byCPU && o.phase.Load() != done && !o.f.ended.Load() {
		err := o.peer.Err()
		o.leave() // the response may still arrive
		return err
	}
	over, p, status, cause := o.phase.Load() == done, o.peer, o.status, o.err
	o.bind.ops.give(o)
	switch {
	case over:
		return p.explain(ctx, status, cause)
	case p.Err() != nil:
		return p.Err()
	}
	return ErrClosed
}

// explain turns the status of a request that failed into the peer's error.
func (p *Peer) explain(ctx context.Context, status driver.Status, cause error) error {
	if (status == driver.Flushed || status == driver.RetryExceeded) && !errors.Is(cause, driver.ErrExhausted) {
		return p.f.verdict(ctx, p, detail(status, cause))
	}
	p.refusedBy(status, cause)
	return p.Err()
}

// detail describes a failure as closely as possible.
func detail(status driver.Status, cause error) string {
	switch {
	case cause != nil:
		return cause.Error()
	case status == driver.RemoteOperation:
		return "the rank could not carry out a request, as where its host has no memory left: its own error says why"
	}
	return status.String()
}

// cancelGrace matters for a transfer that the fabric cannot take back. After its ctx has
// ended, the transfer may use the caller's memory for this time. On a working connection
// it ends sooner.
const cancelGrace = 500 * time.Millisecond

// withdraw ends o for a caller that waits no more. It gives o back now, or leaves that to
// o's completion. No provider touches the caller's memory once it returns.
func (o *op) withdraw() {
	switch {
	case o.phase.Load() == done:
	case !o.borrowed:
		o.leave()
		return
	case o.peer.qp.Load().Cancel(o.id):
		// The completion is queued, or about to be: this wait is short.
		_ = o.f.Wait(context.Background(), o.over)
	default:
		o.outlast()
	}
	o.bind.ops.give(o)
}

// leave has o's completion give o back, or does so itself if the completion was first.
func (o *op) leave() {
	if !o.phase.CompareAndSwap(underWay, leftAlone) {
		o.bind.ops.give(o)
	}
}

// outlast waits for o's end, and ends the connection if o does not end in time.
func (o *op) outlast() {
	grace, cancel := context.WithTimeout(context.Background(), cancelGrace)
	defer cancel()
	if o.f.Wait(grace, o.over) == nil {
		return
	}
	o.peer.lose(&RankError{Rank: o.peer.rank, Kind: ErrUnreachable,
		Cause: "connection ended with a canceled transfer that did not come to its end"})
	_ = o.f.Wait(context.Background(), o.over)
}

// over reports whether no provider touches o's memory any more. Either o has completed, or
// the fabric or the completion queue has ended, or no response can arrive.
func (o *op) over() bool {
	return o.phase.Load() == done || o.f.ended.Load() || o.bind.dead.Load() || o.byCPU && o.peer.fail.Load() != nil
}

// finish ends o by its completion. A request to the target's CPU may fail after its
// response, and its response may arrive after its failure. The first of the two counts.
func (o *op) finish() {
	if !o.phase.CompareAndSwap(underWay, done) && o.phase.CompareAndSwap(leftAlone, done) {
		o.bind.ops.give(o)
	}
}
