package conveyor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/internal/batch"
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
// a fan-in. The idea comes from the conveyors in bale (Maley and DeVinney, "Conveyors
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
	batches []batch.Batch[T]
	in      *fan.In[T]
	current arrived[T]
	clock   batch.Clock
	count   counts
	done    bool // Finish was called
	closed  atomic.Bool
}

// Open opens a conveyor among all ranks of t, which all open it. The pipes
// have room for 16 blocks each, unless WithHeap says otherwise. over a window it takes
// two ends for each rank. Kind: local; ranks connect on first use.
func Open[T any](ctx context.Context, t *runtime.Team, opts ...Option) (*Conveyor[T], error) {
	ctx = wait.Context(ctx)
	if t == nil {
		return nil, fmt.Errorf("conveyor.Open: %w", runtime.ErrTeam)
	}
	o := batch.Default("conveyor")
	for _, opt := range opts {
		opt(&o)
	}
	size := element.Size[T]()
	pipes, err := o.Pipes(size)
	if err != nil {
		return nil, fmt.Errorf("conveyor.Open: %w", err)
	}
	m, err := fan.OpenMesh[T](ctx, t, fan.Names{From: o.Name, To: o.Name}, pipes...)
	if err != nil {
		return nil, fmt.Errorf("conveyor.Open: %w", err)
	}
	c := &Conveyor[T]{in: m.In, batches: make([]batch.Batch[T], t.Size())}
	for to, w := range m.Out {
		c.batches[to].Init(w, o.Bytes/size)
	}
	c.clock.Start(o.Bound, c.late)
	return c, nil
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
	return c.push(context.Background(), to, record, false)
}

func (c *Conveyor[T]) push(ctx context.Context, to int, record T, wait bool) error {
	if uint(to) >= uint(len(c.batches)) {
		return fmt.Errorf("push to rank %d: %w [0, %d)", to, runtime.ErrRange, len(c.batches))
	}
	if c.done {
		return fmt.Errorf("push to rank %d: %w: Finish was called", to, rpipe.ErrClosed)
	}
	b := &c.batches[to]
	b.Lock()
	defer b.Unlock()
	room, err := b.Space(ctx, 1, wait)
	if err != nil {
		return err
	}
	room[0] = record
	c.count.pushed.Add(1)
	if b.Commit(1) {
		if err := b.Send(ctx, wait); err == nil {
			c.count.full.Add(1)
			return nil
		} else if !errors.Is(err, rpipe.ErrWouldBlock) && ctx.Err() == nil {
			return err
		} // else it leaves later
	}
	c.clock.Arm()
	return nil
}

// Flush sends all pushed records. Kind: one-sided; it does not wait until they have
// arrived.
func (c *Conveyor[T]) Flush(ctx context.Context) error {
	ctx = wait.Context(ctx)
	var errs []error
	for i := range c.batches {
		errs = append(errs, c.flush(ctx, &c.batches[i], true))
	}
	return errors.Join(errs...)
}

func (c *Conveyor[T]) flush(ctx context.Context, b *batch.Batch[T], wait bool) error {
	b.Lock()
	defer b.Unlock()
	had := b.Filled()
	err := b.Send(ctx, wait)
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
	for i := range c.batches {
		err := c.flush(context.Background(), &c.batches[i], false)
		if errors.Is(err, rpipe.ErrWouldBlock) {
			blocked = rpipe.ErrWouldBlock
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
	for i := range c.batches {
		b := &c.batches[i]
		err := c.flush(ctx, b, true)
		if err == nil {
			b.Lock()
			err = b.Finish(ctx)
			b.Unlock()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Stats returns what the conveyor did. Kind: local.
func (c *Conveyor[T]) Stats() Stats {
	s := Stats{Pushed: c.count.pushed.Load(), Pulled: c.count.pulled.Load(),
		Full: c.count.full.Load(), ByHand: c.count.byHand.Load()}
	for i := range c.batches {
		s.Late += c.batches[i].SentLate()
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
	c.clock.Stop()
	for i := range c.batches {
		errs = append(errs, c.batches[i].Writer.Close(ctx))
	}
	return errors.Join(errs...)
}

// late has all batches send what they hold. It reports whether some could not.
func (c *Conveyor[T]) late() (again bool) {
	for i := range c.batches {
		again = c.batches[i].Late() || again
	}
	return again
}

// Stats counts what a conveyor did.
type Stats struct {
	Pushed, Pulled uint64 // records
	// Blocks that left when they were full, when their time was up, and by hand.
	Full, Late, ByHand uint64
}

type counts struct {
	pushed, pulled, full, byHand atomic.Uint64
}
