package active

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/batch"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// A Handler handles messages of other ranks. request is valid until the handler returns.
// The Endpoint copies the reply then, and discards the reply to a message of Send. ctx
// ends with the Endpoint.
//
// A handler may call handlers of other ranks, but it holds one of its rank's workers
// meanwhile. Handlers of all workers that wait for each other's ranks wait forever. A
// worker also waits while its caller's process is stopped and takes no replies. The
// caller gets an error for a handler that panics or ends its goroutine.
type Handler func(ctx context.Context, from int, request []byte) (reply []byte, err error)

// Handlers are a rank's handlers by name.
type Handlers map[string]Handler

// An Endpoint sends active messages to all ranks of a team, and runs the handlers of this
// rank.
//
// Messages to one rank share blocks of a pipe. Requests and replies have pipes of
// their own: a reply never waits for requests. Callers take replies at any time, so
// requests and replies cannot block each other. Requests of one rank start in the order
// of Call and Send; with several workers they may run at the same time.
//
// Memory is bounded: each worker (WithWorkers) runs one handler at a time. While all
// workers are busy, requests stay in the pipes, and when those are full, Call and Send
// wait. A slow rank slows down its callers.
//
// Any goroutine may call all methods.
type Endpoint struct {
	handlers map[uint64]Handler // by the hash of their names
	requests batch.Batches[byte]
	replies  batch.Batches[byte]
	calls    calls
	target   target
	replyIn  *fan.In[byte]
	replied  chan struct{} // closed when no reply follows
	rank     int

	alive   context.Context // until Close has ended
	end     context.CancelFunc
	within  context.Context // alive, as handlers get it
	closing atomic.Bool
	closed  sync.Once
}

// Open opens an endpoint of active messages, and serves this rank's handlers from then on.
// All ranks of t call it with the same name, batch, heap and width; handlers may differ.
// Over a pipe window it takes four ends for each rank. A request and a reply may be as
// large as the heap of a pipe, less 24 bytes. When Open fails, it has opened no pipe.
//
// ErrTeam: t is nil. ErrRange: an option is out of its range. Another error names a
// handler that is nil, or whose name has the hash of another one's. Kind: local; ranks
// connect on first use.
func Open(ctx context.Context, t *runtime.Team, handlers Handlers, opts ...Option) (*Endpoint, error) {
	ctx = wait.Context(ctx)
	if t == nil {
		return nil, fmt.Errorf("active.Open: %w", runtime.ErrTeam)
	}
	e := &Endpoint{rank: t.Rank(), handlers: make(map[uint64]Handler, len(handlers)), replied: make(chan struct{})}
	for name, h := range handlers {
		if e.handlers[pipe.Hash(name)] != nil || h == nil {
			return nil, fmt.Errorf("active.Open: handler %q is nil, or its name is too like another one's: rename it", name)
		}
		e.handlers[pipe.Hash(name)] = h
	}
	o := config{Config: batch.Default("active"), workers: DefaultWorkers}
	for _, opt := range opts {
		opt(&o)
	}
	pipes, err := o.PipeOptions(frameHeader)
	if err == nil {
		err = pipe.Within("%d workers", o.workers, 1, 1<<16)
	}
	if err == nil {
		err = e.open(ctx, t, &o, pipes)
	}
	if err != nil {
		return nil, fmt.Errorf("active.Open: %w", err)
	}
	return e, nil
}

// open opens the pipes of requests and replies, and starts the goroutines: one takes replies in, the
// others are the workers.
func (e *Endpoint) open(ctx context.Context, t *runtime.Team, o *config, pipes []rpipe.Option) error {
	requests, replies := o.Name+"/requests", o.Name+"/replies"
	m, err := fan.OpenMeshes[byte](ctx, t, []fan.Names{{From: requests, To: requests}, {From: replies, To: replies}}, pipes...)
	if err != nil {
		return err
	}
	e.calls.init(t.Size())
	e.alive, e.end = context.WithCancel(context.WithoutCancel(ctx))
	e.within = context.WithValue(e.alive, handlerOf{e}, true)
	e.requests.Init(m[0].Out, o.Bytes&^7, o.Bound)
	e.replies.Init(m[1].Out, o.Bytes&^7, o.Bound)
	e.target.in, e.replyIn = m[0].In, m[1].In
	e.replyIn.ReportEnds()
	go e.takeReplies()
	e.serve(o.workers)
	return nil
}

// Call runs the handler of a name at a rank, and returns its reply, which the caller owns.
// It waits for room in the pipe to that rank and for the reply. The caller may change
// request when Call returns.
//
// RemoteError: the handler did not run or failed. runtime.ErrRankDead: the rank died, before
// or after the handler ran. ErrClosed: this rank or that one has closed. ErrTooLarge: the
// request does not fit a pipe. ErrRange: there is no such rank. When ctx ends first, the
// handler may still run. Other calls continue after any error. Kind: one-sided; the
// target's workers run the handler.
func (e *Endpoint) Call(ctx context.Context, rank int, name string, request []byte) ([]byte, error) {
	ctx = wait.Context(ctx)
	c, id, err := e.calls.begin(rank, name)
	var reply []byte
	if err == nil {
		defer e.calls.forget(id)
		reply, err = e.call(ctx, c, &frame{kind: frameRequest, name: pipe.Hash(name), id: id, payload: request})
	}
	if err == nil {
		return reply, nil
	}
	var remote *RemoteError
	if errors.As(err, &remote) && !errors.Is(context.Cause(ctx), remote) {
		return nil, remote // it names the call
	}
	return nil, e.failed("call of", name, rank, err)
}

// call sends a request, and waits for its result.
func (e *Endpoint) call(ctx context.Context, c *call, request *frame) ([]byte, error) {
	if e.closing.Load() {
		return nil, pipe.ErrSelfClosed
	}
	if err := put(ctx, &e.requests, c.rank, request, true); err != nil {
		return nil, err
	}
	select {
	case r := <-c.done:
		return r.reply, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Send has the handler of a name run at a rank, without a reply. It returns when the
// message lies in that rank's block; the caller may change request then. The sender does
// not learn whether the handler ran. The message leaves with a full block, after a while
// (WithBound), or by Flush. Send waits for room in the pipe to that rank. When ctx ends
// first, the handler may still run. Kind: one-sided. Errors: as Call's, without RemoteError.
func (e *Endpoint) Send(ctx context.Context, rank int, name string, request []byte) error {
	ctx = wait.Context(ctx)
	err := e.calls.reachable(rank)
	if err == nil && e.closing.Load() {
		err = pipe.ErrSelfClosed
	}
	if err == nil {
		err = put(ctx, &e.requests, rank, &frame{kind: frameRequest, name: pipe.Hash(name), payload: request}, false)
	}
	return e.failed("message to", name, rank, err)
}

// Flush posts all messages of Send that have not left. It does not wait until they have
// arrived. Flush waits while a rank has no room for its block. It joins the errors of all
// ranks. Kind: one-sided.
func (e *Endpoint) Flush(ctx context.Context) error { return e.requests.Flush(wait.Context(ctx)) }

// failed wraps the error of a call or a message. It returns nil for nil.
func (e *Endpoint) failed(what, name string, rank int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q at rank %d by rank %d: %w", what, name, rank, e.rank, err)
}

// Stats returns counts of this rank's handlers. Kind: local.
func (e *Endpoint) Stats() Stats {
	return Stats{Handled: e.target.handled.Load(), Failed: e.target.failures.Load(), Running: int(e.target.running.Load())}
}

// Stats counts what a rank's handlers did.
type Stats struct {
	Handled uint64 // messages, including those without a handler
	Failed  uint64 // messages whose handler failed, panicked or is missing, and corrupt blocks
	Running int    // handlers
}
