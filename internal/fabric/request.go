package fabric

import (
	"context"
	"errors"

	"github.com/gopgas/gopgas/internal/wait"
)

// ErrEnded says that a caller has already waited for the request.
var ErrEnded = errors.New("request has ended: it was waited for before")

// A Request names an operation under way. The zero Request is complete.
type Request struct {
	o   *op
	use uint64
}

// Wait returns the operation's result and ends the request. If ctx ends first, Wait takes
// the operation's memory back from the provider before it returns. One goroutine waits for
// a request, once.
func (r Request) Wait(ctx context.Context) error {
	if r.o == nil {
		return nil
	}
	if r.o.uses.Load() != r.use {
		return ErrEnded
	}
	return r.o.settle(ctx)
}

// Value is Wait for an atomic that was started without memory for the old value, and returns that value.
func (r Request) Value(ctx context.Context) (old uint64, err error) {
	if r.o == nil || r.o.uses.Load() != r.use {
		return 0, ErrEnded
	}
	return r.o.outcome(ctx)
}

// handOver waits until the caller owns the source of a write again, whose flag is posted. If
// ctx ends first, the caller owns the source as well, and data and flag still arrive.
func (r Request) handOver(ctx context.Context) error {
	if r.o == nil {
		return nil
	}
	f, p := r.o.f, r.o.peer
	err := r.Wait(ctx)
	if err == nil || wait.Context(ctx).Err() == nil || f.ended.Load() {
		return err
	}
	return p.Err()
}

// Done reports whether Wait would return at once. It makes progress.
func (r Request) Done() bool {
	if r.Complete() {
		return true
	}
	r.o.f.Progress()
	return r.Complete()
}

// Over reports whether Value returns at once: the operation is complete, or its peer is lost and no
// response can arrive. It makes no progress.
func (r Request) Over() bool { return r.o == nil || r.o.uses.Load() != r.use || r.o.over() }

// Complete is Done without progress.
func (r Request) Complete() bool {
	return r.o == nil || r.o.uses.Load() != r.use || r.o.phase.Load() == done
}
