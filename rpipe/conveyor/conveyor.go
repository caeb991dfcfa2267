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
	"github.com/gopgas/gopgas/runtime"
)

// A Conveyor carries small records between all ranks of a team, from any to any. It
// suits random access, such as updates of a table that is spread over ranks. Push
// stores records for one rank in a block of the pipe to it. The block leaves as one
// transfer with one flag. At the target Pull returns the records one by one with their
// sender's rank, through a fan-in.
//
// One goroutine at a time calls Push, TryPush, Flush, TryFlush, EndPhase, TryEndPhase and
// Finish. One goroutine
// at a time, the same or a second one, calls Pull, TryPull and All. Call Close when
// neither is in a call. Any goroutine may call Stats.
//
// When the reader of a pipe does not keep up, Push, Flush and Finish wait for it. So
// ranks that push and do not pull meanwhile may wait for each other forever. Pull in a
// second goroutine, or use TryPush and TryFlush, and pull on ErrWouldBlock.
type Conveyor[T any] struct {
	out      batch.Batches[T]
	in       *fan.In[T]
	current  current[T]
	phases   phases[T]
	ended    uint64        // phases that this rank has ended
	pushed   atomic.Uint64 // records, counted by Push
	pulled   atomic.Uint64 // records, counted by Pull
	finished bool          // Finish was called
	closed   atomic.Bool
}

// Open opens a conveyor among all ranks of t. All ranks of t call it with the same name,
// batch, heap and width. The pipes have room for 16 blocks each, unless WithHeap and
// WithWidth say otherwise. Over a pipe window it takes two ends for each rank. When Open
// fails, it has opened no pipe.
//
// ErrTeam: t is nil. ErrType: records of T hold pointers. ErrRange: an option is out of
// its range. Kind: local; ranks connect on first use.
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
	pipes, err := o.PipeOptions(size)
	if err != nil {
		return nil, fmt.Errorf("conveyor.Open: %w", err)
	}
	m, err := fan.OpenMesh[T](ctx, t, fan.Names{From: o.Name, To: o.Name}, pipes...)
	if err != nil {
		return nil, fmt.Errorf("conveyor.Open: %w", err)
	}
	m.In.ReportEnds()
	c := &Conveyor[T]{in: m.In}
	c.phases.init(t.Size())
	c.out.Init(m.Out, o.Bytes/size, o.Bound)
	return c, nil
}

// Push stores a record for a rank, and returns when a copy lies in that rank's block.
// Records for one rank arrive in the order of Push. Push waits while that rank has no
// room for another block.
//
// ErrRange: t has no such rank. ErrClosed: this rank has finished, or that rank has
// closed. runtime.ErrRankDead: that rank is dead; Push to other ranks goes on. When ctx
// ends while Push waits for room, Push did not store the record. Kind: local; one-sided
// where the record fills a block.
func (c *Conveyor[T]) Push(ctx context.Context, to int, record T) error {
	return c.push(wait.Context(ctx), to, record)
}

// TryPush stores a record for a rank as Push does, without waiting for room.
// ErrWouldBlock: TryPush did not store the record. Pull some records then, so that ranks
// that wait for this one can continue. Kind: as Push's.
func (c *Conveyor[T]) TryPush(to int, record T) error {
	return c.push(c.out.Now, to, record)
}

// push stores a record in the block for a rank. It sends the block if it is full; a send that finds no
// room is left to the next call or the clock.
func (c *Conveyor[T]) push(ctx context.Context, to int, record T) error {
	if uint(to) >= uint(len(c.out.To)) {
		return fmt.Errorf("push to rank %d: %w [0, %d)", to, runtime.ErrRange, len(c.out.To))
	}
	if c.finished {
		return fmt.Errorf("push to rank %d: %w: Finish was called", to, rpipe.ErrClosed)
	}
	b := &c.out.To[to]
	b.Lock()
	defer b.Unlock()
	room, err := b.Space(ctx, 1)
	if err != nil {
		return err
	}
	room[0] = record
	c.pushed.Add(1)
	if b.Commit(1) {
		err := b.Send(ctx, batch.Full)
		if err == nil || !errors.Is(err, context.Cause(ctx)) {
			return err
		} // else it leaves later
	}
	c.out.Clock.Arm()
	return nil
}

// Flush sends all pushed records. It returns when their blocks are posted, and does not
// wait until they have arrived. Flush waits while a rank has no room for its block. It
// joins the errors of all ranks; records for ranks without error have left. Kind:
// one-sided.
func (c *Conveyor[T]) Flush(ctx context.Context) error {
	return c.out.Flush(wait.Context(ctx))
}

// TryFlush sends all pushed records as Flush does, without waiting for room.
// ErrWouldBlock: some have not left. Pull some records then, so that ranks that wait for
// this one can continue. Kind: as Flush's.
func (c *Conveyor[T]) TryFlush() error { return c.out.Flush(c.out.Now) }

// EndPhase flushes, and tells all ranks that this rank has pushed all its records of this
// phase. Later records belong to the next one. When all ranks have ended the
// phase, by EndPhase or by Finish, and this rank has pulled all its records, Pull returns
// ErrPhaseOver. Records of the next phase wait until then. So the ranks work in steps, such
// as the levels of a breadth-first search, and no step needs a barrier.
//
// EndPhase waits while a rank has no room for its block. It joins the errors of all ranks;
// for ranks without error the phase has ended. When ctx ends first, call EndPhase again.
// It sends each rank one empty block. Kind: one-sided.
func (c *Conveyor[T]) EndPhase(ctx context.Context) error {
	return c.endPhase(wait.Context(ctx))
}

// TryEndPhase ends the phase as EndPhase does, without waiting for room. ErrWouldBlock: it
// has not told all ranks. Pull some records then, and call it again before the next
// TryPush. Kind: as EndPhase's.
func (c *Conveyor[T]) TryEndPhase() error { return c.endPhase(c.out.Now) }

// endPhase sends all records, and behind them a mark to each rank. Without room it returns
// ErrWouldBlock under a context that does not wait.
func (c *Conveyor[T]) endPhase(ctx context.Context) error {
	if c.finished {
		return fmt.Errorf("EndPhase: %w: Finish was called", rpipe.ErrClosed)
	}
	err := c.out.Mark(ctx, c.ended+1)
	if err == nil || ctx.Err() == nil && !errors.Is(err, rpipe.ErrWouldBlock) {
		c.ended++ // ranks with an error get no more records
	}
	return err
}

// Finish flushes, and tells all ranks that this one pushes no more. When all ranks have
// finished, and this rank has pulled all records, Pull returns io.EOF. When ctx ends
// first, call Finish or Close again. Kind: one-sided.
func (c *Conveyor[T]) Finish(ctx context.Context) error {
	c.finished = true
	return c.out.Finish(wait.Context(ctx))
}

// Stats returns counts of this rank's records and blocks. Kind: local.
func (c *Conveyor[T]) Stats() Stats {
	return Stats{Pushed: c.pushed.Load(), Pulled: c.pulled.Load(),
		Full: c.out.Sent(batch.Full), Late: c.out.Sent(batch.Late), ByHand: c.out.Sent(batch.ByHand)}
}

// Close finishes, waits until all ranks have pulled this rank's records, and frees the
// conveyor's memory. Records that this rank did not pull are lost, and ranks that push
// more for it get ErrClosed: pull up to io.EOF before. When ctx ends first, Close returns
// the cause, and records may be lost. The second call does nothing. Kind: one-sided.
func (c *Conveyor[T]) Close(ctx context.Context) error {
	ctx = wait.Context(ctx)
	if c.closed.Swap(true) {
		return nil
	}
	// Close ends the pipes to this rank first, as no goroutine reads them any more. Else
	// closing ranks that are full of each other's records would wait for each other.
	return errors.Join(c.in.Close(ctx), c.Finish(ctx), c.out.Close(ctx))
}

// Stats counts what a conveyor did at this rank.
type Stats struct {
	Pushed, Pulled uint64 // records
	// Blocks that left when they were full, when their first record's bound was over, and
	// by Flush, TryFlush or Finish.
	Full, Late, ByHand uint64
}
