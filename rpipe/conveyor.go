package rpipe

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/runtime"
)

// A Conveyor carries small records between all ranks of a team, from any to any. It
// suits random access, such as updates of a table that is spread over ranks. Push
// stores records for one rank in a block of the pipe to it. The block leaves as one
// transfer with one flag.
//
//	Push(3, r)   [r r r r r r . .]  block for rank 3, at that rank or registered here
//	Push(5, r)   [r r . . . . . .]  block for rank 5
//	                 |
//	                 +-- leaves when it is full (WithBatch), when its first record has
//	                     waited for some time (WithBound), or by Flush
//
// At the target Pull returns the records one by one with their sender's rank, through
// a FanIn. The idea comes from the conveyors in bale (Maley and DeVinney, "Conveyors
// for Streaming Many-to-Many Communication", IA3 2019).
//
// One goroutine at a time calls Push, TryPush, Flush, TryFlush and Finish. One goroutine
// at a time, the same or a second one, calls Pull, TryPull and All. Call Close when
// neither is in a call. Any goroutine may call Stats.
//
// When the reader of a pipe does not keep up, Push, Flush and Finish wait for it. So
// ranks that push and do not pull meanwhile may wait for each other forever. Pull in a
// second goroutine, or use TryPush and TryFlush, and pull on ErrWouldBlock.
type Conveyor[T any] struct {
	lanes   []lane[T]
	in      *FanIn[T]
	current arrived[T]
	clock   clock
	count   conveyorCounts
	done    bool // Finish was called
	closed  atomic.Bool
}

// Without options a conveyor has these.
const (
	DefaultBatch = 4096
	DefaultBound = 500 * time.Microsecond
	// depth counts the blocks for which a conveyor's pipe has room.
	depth = 16
)

// WithBatch sets how many bytes of records a conveyor gathers in a block.
func WithBatch(bytes int) Option {
	return func(o *pipe.Options) error {
		o.Batch = bytes
		return pipe.Within("batch of %d bytes", bytes, 1, maxBatch)
	}
}

// WithBound sets how long a record waits at most in a block that is not full before
// it leaves; 0 has it wait for Flush. It is the writer's alone.
func WithBound(d time.Duration) Option {
	return func(o *pipe.Options) error {
		o.Bound = d
		if d < 0 {
			return fmt.Errorf("bound of %v: %w: give 0 or more", d, runtime.ErrRange)
		}
		return nil
	}
}

const maxBatch = 1 << 24

// OpenConveyor opens a conveyor among all ranks of t, which all open it. The pipes
// have room for 16 blocks each, unless WithHeap says otherwise. Over a carrier it takes
// two ends for each rank. Kind: local; ranks
// connect on first use.
func OpenConveyor[T any](ctx context.Context, t *runtime.Team, opts ...Option) (*Conveyor[T], error) {
	ctx = wait.Context(ctx)
	if t == nil {
		return nil, fmt.Errorf("OpenConveyor: %w", runtime.ErrTeam)
	}
	o, opts, err := conveyed(opts, element.Size[T]())
	if err != nil {
		return nil, fmt.Errorf("OpenConveyor: %w", err)
	}
	m, err := openMeshes[T](ctx, t, meshOptions{opts, opts})
	if err != nil {
		return nil, fmt.Errorf("OpenConveyor: %w", err)
	}
	c := &Conveyor[T]{in: m[0].in, lanes: make([]lane[T], t.Size())}
	for to, w := range m[0].out {
		c.lanes[to].w, c.lanes[to].batch = w, max(1, o.Batch/element.Size[T]())
	}
	c.clock.start(o.Bound, c.late)
	return c, nil
}

// conveyed returns the options of a conveyor's pipes.
func conveyed(opts []Option, size int) (pipe.Options, []Option, error) {
	asked, err := pipe.Collect(append([]Option{WithName("conveyor"), WithBatch(DefaultBatch), WithBound(DefaultBound), WithHeap(64)}, opts...))
	switch {
	case err != nil:
		return asked, nil, err
	case asked.Pull:
		return asked, nil, fmt.Errorf("pull: %w: a conveyor pushes", errors.ErrUnsupported)
	}
	heap := depth * pipe.Line(max(asked.Batch, size))
	pipes := append([]Option{WithName(asked.Name), WithHeap(heap), WithWidth(depth), WithBlocks(2 * depth)}, opts...)
	o, err := pipe.Collect(pipes)
	if err == nil && o.Heap < 2*pipe.Line(max(asked.Batch, size)) {
		err = fmt.Errorf("heap of %d bytes for batches of %d: %w: give room for two", o.Heap, asked.Batch, runtime.ErrRange)
	}
	o.Batch, o.Bound = asked.Batch, asked.Bound
	return o, pipes, err
}

// Push stores a record for a rank. The record leaves later. Push waits while that rank
// has no room for another block. Kind: local; one-sided where the record fills a
// block.
func (c *Conveyor[T]) Push(ctx context.Context, to int, record T) error {
	return c.push(wait.Context(ctx), to, record, true)
}

// TryPush stores a record for a rank as Push does, without waiting for room.
// ErrWouldBlock: TryPush did not take the record. Pull some then, so that ranks that
// wait for this one can continue. Kind: as Push's.
func (c *Conveyor[T]) TryPush(to int, record T) error {
	return c.push(c.clock.noWait, to, record, false)
}

func (c *Conveyor[T]) push(ctx context.Context, to int, record T, wait bool) error {
	if uint(to) >= uint(len(c.lanes)) {
		return fmt.Errorf("push to rank %d: %w [0, %d)", to, runtime.ErrRange, len(c.lanes))
	}
	if c.done {
		return fmt.Errorf("push to rank %d: %w: Finish was called", to, ErrClosed)
	}
	l := &c.lanes[to]
	l.mu.Lock()
	defer l.mu.Unlock()
	room, err := l.space(ctx, 1, wait)
	if err != nil {
		return err
	}
	room[0] = record
	c.count.pushed.Add(1)
	if l.commit(1) {
		if err := l.send(ctx, wait); err == nil {
			c.count.full.Add(1)
			return nil
		} else if !errors.Is(err, ErrWouldBlock) && ctx.Err() == nil {
			return err
		} // else it leaves later
	}
	c.clock.arm()
	return nil
}

// Flush sends all pushed records. Kind: one-sided; it does not wait until they have
// arrived.
func (c *Conveyor[T]) Flush(ctx context.Context) error {
	ctx = wait.Context(ctx)
	var errs []error
	for i := range c.lanes {
		errs = append(errs, c.flush(ctx, &c.lanes[i], true))
	}
	return errors.Join(errs...)
}

func (c *Conveyor[T]) flush(ctx context.Context, l *lane[T], wait bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	had := l.filled
	err := l.send(ctx, wait)
	if err == nil && had > 0 {
		c.count.byHand.Add(1)
	}
	return err
}

// TryFlush sends all pushed records as Flush does, without waiting for room.
// ErrWouldBlock: some have not left. Pull some then, so that ranks that wait for this
// one can continue. Kind: as Flush's.
func (c *Conveyor[T]) TryFlush() error {
	var errs []error
	var blocked error
	for i := range c.lanes {
		err := c.flush(c.clock.noWait, &c.lanes[i], false)
		if errors.Is(err, ErrWouldBlock) {
			blocked = ErrWouldBlock
			continue
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return blocked
}

// Finish flushes, and tells all ranks that this one pushes no more. When all ranks have
// finished, and all records are pulled, Pull returns io.EOF. Kind: one-sided.
func (c *Conveyor[T]) Finish(ctx context.Context) error {
	ctx = wait.Context(ctx)
	c.done = true
	var errs []error
	for i := range c.lanes {
		l := &c.lanes[i]
		err := c.flush(ctx, l, true)
		if err == nil {
			l.mu.Lock()
			err = l.finish(ctx)
			l.mu.Unlock()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Stats returns what the conveyor did. Kind: local.
func (c *Conveyor[T]) Stats() ConveyorStats {
	s := ConveyorStats{Pushed: c.count.pushed.Load(), Pulled: c.count.pulled.Load(),
		Full: c.count.full.Load(), ByHand: c.count.byHand.Load()}
	for i := range c.lanes {
		s.Late += c.lanes[i].inTime.Load()
	}
	return s
}

// Close finishes, waits until all ranks have pulled this rank's records, and ends the
// conveyor here. Records that were not pulled are lost, and ranks that push more for
// this one get ErrClosed: pull up to io.EOF before. The second call does nothing. Kind:
// one-sided.
func (c *Conveyor[T]) Close(ctx context.Context) error {
	ctx = wait.Context(ctx)
	if c.closed.Swap(true) {
		return nil
	}
	ctx, cancel := pipe.WithMoment(ctx)
	defer cancel()
	// Close ends the pipes to this rank first, as no goroutine reads them any more. Else
	// closing ranks that are full of each other's records would wait for each other.
	errs := []error{c.in.Close(ctx), c.Finish(ctx)}
	c.clock.stop()
	for i := range c.lanes {
		errs = append(errs, c.lanes[i].w.Close(ctx))
	}
	return errors.Join(errs...)
}
