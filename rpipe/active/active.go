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

// A Handler answers messages of other ranks. request is valid until the handler
// returns. Endpoint copies the reply then, and drops the reply to a message of Send. ctx
// ends with the Endpoint.
//
// A handler may call handlers of other ranks, but it holds one of its rank's workers
// meanwhile. Handlers of all workers that wait for each other's ranks wait forever. A
// worker also waits while its caller's process is stopped and takes no replies. The
// caller gets an error for a handler that panics or ends its goroutine.
type Handler func(ctx context.Context, from int, request []byte) (reply []byte, err error)

// Handlers are a rank's handlers by name.
type Handlers map[string]Handler

// An Endpoint carries active messages between all ranks of a team: a message names the
// handler that runs at the target (von Eicken, Culler, Goldstein and Schauser,
// "Endpoint Messages", ISCA 1992).
//
//	rank 0                                       rank 1
//	Call "add"  --- requests, by conveyor --->   fan-in -> workers: handler "add"
//	reply       <-- replies, by conveyor ----
//
// Messages to one rank share blocks of a pipe. Requests and replies have pipes of
// their own: a reply never waits for requests. Callers take replies at any time, so
// requests and replies cannot block each other.
//
// Memory is bounded: each worker (WithWorkers) runs one handler at a time. While all
// workers are busy, requests stay in the pipes, and when those are full, Call and Send
// wait. A slow rank slows down its callers.
//
// All methods may be called by any goroutine.
type Endpoint struct {
	handlers map[uint64]Handler
	requests *mailer
	replies  *mailer
	calls    calls
	target   target
	replyIn  *fan.In[byte]
	rank     int
	end      context.CancelFunc
	alive    context.Context // until Close has ended
	within   context.Context // alive, as handlers have it
	heard    chan struct{}   // closed when no reply follows
	closing  atomic.Bool
	closed   sync.Once
}

// Open opens active messages among all ranks of t, and serves this rank's
// handlers from then on. All ranks of t call it. It takes the options of conveyor.Open
// and WithWorkers. over a window it takes four ends for each rank. A message and its
// reply may be as large as the pipes' heaps, less 24 bytes. Kind: local; ranks connect
// on first use.
func Open(ctx context.Context, t *runtime.Team, handlers Handlers, opts ...Option) (*Endpoint, error) {
	ctx = wait.Context(ctx)
	if t == nil {
		return nil, fmt.Errorf("active.Open: %w", runtime.ErrTeam)
	}
	a := &Endpoint{rank: t.Rank(), handlers: make(map[uint64]Handler, len(handlers)), heard: make(chan struct{})}
	for name, h := range handlers {
		if a.handlers[pipe.Hash(name)] != nil || h == nil {
			return nil, fmt.Errorf("active.Open: handler %q is nil, or its name is too like another one's: rename it", name)
		}
		a.handlers[pipe.Hash(name)] = h
	}
	o := config{Config: batch.Default("active"), workers: DefaultWorkers}
	for _, opt := range opts {
		opt(&o)
	}
	pipes, err := o.Pipes(frameHeader)
	if err == nil {
		err = pipe.Within("%d workers", o.workers, 1, 1<<16)
	}
	if err != nil {
		return nil, fmt.Errorf("active.Open: %w", err)
	}
	if err := a.open(ctx, t, &o, pipes); err != nil {
		return nil, err
	}
	return a, nil
}

func (a *Endpoint) open(ctx context.Context, t *runtime.Team, o *config, pipes []rpipe.Option) error {
	a.calls.init(t.Size())
	a.alive, a.end = context.WithCancel(context.WithoutCancel(ctx))
	a.within = context.WithValue(a.alive, handlerOf{a}, true)
	requests, replies := o.Name+"/requests", o.Name+"/replies"
	m, err := fan.OpenMeshes[byte](ctx, t, []fan.Names{{From: requests, To: requests}, {From: replies, To: replies}}, pipes...)
	if err != nil {
		a.end()
		return fmt.Errorf("active.Open: %w", err)
	}
	a.target.in, a.requests = m[0].In, newMailer(m[0].Out, o)
	a.replyIn, a.replies = m[1].In, newMailer(m[1].Out, o)
	a.replyIn.OnEnd(a.calls.lose)
	go a.listen()
	a.serve(o.workers)
	return nil
}

// Call has the handler of a name run at a rank and returns its reply. It waits for
// room in the pipe to that rank and for the reply. When ctx ends first, the handler may
// run all the same. A RemoteError says why the handler failed there.
// runtime.ErrRankDead: the rank died, before or after the handler ran. Other calls
// continue after either error. Kind: one-sided; the target's workers run the handler.
func (a *Endpoint) Call(ctx context.Context, rank int, name string, request []byte) ([]byte, error) {
	ctx = wait.Context(ctx)
	c, id, err := a.calls.begin(rank)
	if err == nil && a.closing.Load() {
		a.calls.forget(id)
		err = pipe.ErrSelfClosed
	}
	if err != nil {
		return nil, a.failed("call of", name, rank, err)
	}
	err = a.requests.put(ctx, rank, &frame{kind: frameRequest, name: pipe.Hash(name), id: id, payload: request}, true)
	if err != nil {
		a.calls.forget(id)
		return nil, a.failed("call of", name, rank, err)
	}
	select {
	case r := <-c.done:
		if r.err != nil {
			return nil, r.explain(name, rank)
		}
		return r.reply, nil
	case <-ctx.Done():
		a.calls.forget(id)
		return nil, a.failed("call of", name, rank, context.Cause(ctx))
	}
}

// Send has the handler of a name run at a rank, without a reply. The sender does not
// learn whether the handler ran. The message leaves in a full block, after a while
// (WithBound), or by Flush. Send waits for room in the pipe to that rank. Kind:
// one-sided.
func (a *Endpoint) Send(ctx context.Context, rank int, name string, request []byte) error {
	ctx = wait.Context(ctx)
	err := a.calls.reachable(rank)
	if err == nil && a.closing.Load() {
		err = pipe.ErrSelfClosed
	}
	if err == nil {
		err = a.requests.put(ctx, rank, &frame{kind: frameRequest, name: pipe.Hash(name), payload: request}, false)
	}
	return a.failed("message to", name, rank, err)
}

// Flush posts all messages of Send that have not left. Kind: one-sided; it does not
// wait until they have arrived.
func (a *Endpoint) Flush(ctx context.Context) error {
	ctx = wait.Context(ctx)
	var errs []error
	for i := range a.requests.drops {
		d := &a.requests.drops[i]
		err := d.enter(ctx)
		if err == nil {
			err = d.Send(ctx, true)
			d.leave()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (a *Endpoint) failed(what, name string, rank int, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q at rank %d by rank %d: %w", what, name, rank, a.rank, err)
}

// Stats returns counts of this rank's handlers. Kind: local.
func (a *Endpoint) Stats() Stats {
	return Stats{Handled: a.target.handled.Load(), Failed: a.target.failures.Load(), Running: int(a.target.running.Load())}
}

// Stats counts what a rank's handlers did.
type Stats struct {
	Handled uint64 // messages, those of no handler among them
	Failed  uint64 // of them: the handler failed or panicked, or there is none
	Running int    // handlers
}

// Close ends calls by this rank and its handlers. It runs this rank's handlers until all
// ranks have closed and their messages are handled. When ctx ends first, Close returns
// an error, and messages may be lost. The second call does nothing. A handler cannot
// call Close, which would wait for that handler. Kind: collective.
func (a *Endpoint) Close(ctx context.Context) (err error) {
	ctx = wait.Context(ctx)
	if ctx.Value(handlerOf{a}) != nil {
		return errCloseWithin
	}
	a.closed.Do(func() {
		ctx, cancel := pipe.WithMoment(ctx)
		defer cancel()
		a.closing.Store(true)
		err = a.requests.finish(ctx)
		err = errors.Join(err, until(ctx, a.target.done))
		err = errors.Join(err, a.replies.finish(ctx))
		err = errors.Join(err, until(ctx, a.heard), a.release(ctx))
	})
	return err
}

// handlerOf is the key of a context that a handler has.
type handlerOf struct{ a *Endpoint }

var errCloseWithin = errors.New("active messages cannot be closed by a handler, for whose end Close would wait: have another goroutine close them")

// until waits for done.
func until(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w (while other ranks have not closed)", context.Cause(ctx))
	}
}

// leave ends the pipes of requests. Running handlers still read their requests there:
// then a goroutine ends the pipes after the last handler.
func (a *Endpoint) leave(ctx context.Context) error {
	select {
	case <-a.target.done:
		return a.target.in.Close(ctx)
	default:
	}
	go func() {
		<-a.target.done
		_ = a.target.in.Close(pipe.NoWait()) // no caller is left to take the error
	}()
	return nil
}

// release ends all pipes.
func (a *Endpoint) release(ctx context.Context) error {
	a.end()
	errs := []error{a.leave(ctx), a.replyIn.Close(ctx)}
	for _, m := range []*mailer{a.requests, a.replies} {
		m.clock.Stop()
		errs = append(errs, m.close(ctx))
	}
	return errors.Join(errs...)
}
