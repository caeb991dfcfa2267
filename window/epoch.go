package window

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// ErrEpoch: an epoch of this kind is open, or the epoch has ended.
var ErrEpoch = errors.New("call out of turn: Start, Complete, Start; and Post, Wait, Post")

// Epochs pair origins with targets without the rest of the team: MPI's general active target
// synchronization (MPI-4.1, section 12.5.2). A rank has a bit at each other rank for either call:
//
//	target                              origin
//	Post: bit at the origin      ->     Start: waits for the bit, and clears it
//	                                    operations on the target
//	Wait: waits for the bit,     <-     Complete: bit at the target
//	      and clears it
//
// A rank adds a bit to a word of its peer. The sum needs no carry: Complete follows Start, which has
// cleared the target's bit, and the next Post follows Wait, which has cleared the origin's.

// epochs holds the open epochs of this rank.
type epochs struct {
	mu               sync.Mutex
	access, exposure *epoch
}

// An epoch is an access epoch or an exposure epoch of this rank.
type epoch struct {
	core  *core
	peers []int
	kind  **epoch // where the window has it while it is open
	// ending: a call ends it, or has failed after it changed bits. Under the mutex of epochs.
	ending bool
}

// way returns the window that leads to the peers: without its queue once that has completed the
// operations and is closed.
func (e *epoch) way() *core {
	if q := e.core.via; q != nil && q.flushed.Load() {
		return e.core.under
	}
	return e.core
}

// An Exposure is an exposure epoch: origins access this rank's memory.
type Exposure struct{ e *epoch }

// An Access is an access epoch: this rank accesses targets' memory.
type Access struct{ e *epoch }

// Post begins an exposure epoch for origins (MPI_Win_post). Each of them may then Start an access epoch
// with this rank among its targets. Post does not wait for them. origins has each rank once at
// most, and may have this rank; the caller keeps it. It returns [ErrEpoch] while an exposure epoch
// of the window is open, and [ErrPart] for attached memory. After any other error but those of
// the arguments, no further epoch of the window can begin. Kind: one-sided.
func (w *Window[T]) Post(ctx context.Context, origins []int) (Exposure, error) {
	ctx = wait.Context(ctx)
	e, err := w.begin(&w.epochs.exposure, origins)
	if err == nil {
		err = e.mark(ctx, w.layout.posted)
	}
	if err != nil {
		return Exposure{}, w.fail("Post", err)
	}
	return Exposure{e}, nil
}

// Start begins an access epoch for targets (MPI_Win_start). It waits until each target has called Post
// with this rank among its origins. The list targets has each rank once at most, and may have this rank;
// the caller keeps it. No epoch has begun if ctx ends, if a rank of the team is gone, or if a target has
// returned from its body. The caller may then call Start again. It returns [ErrEpoch] while an access
// epoch of the window is open. Operations on other ranks, and without an epoch, are as valid as ever.
// Kind: one-sided.
func (w *Window[T]) Start(ctx context.Context, targets []int) (Access, error) {
	ctx = wait.Context(ctx)
	e, err := w.begin(&w.epochs.access, targets)
	if err == nil && !mutant.StartWithoutPost {
		if err = e.await(ctx, w.layout.posted); err != nil {
			e.end() // no bit has changed
		} else {
			err = e.clear(ctx, w.layout.posted)
		}
	}
	if err != nil {
		return Access{}, w.fail("Start", err)
	}
	return Access{e}, nil
}

// Complete ends the access epoch (MPI_Win_complete). Each target that calls Wait then sees this rank's
// puts and atomics through the window that called Start. Complete waits for no target. Started
// operations need a wait of their own. A second call returns [ErrEpoch]. After any other error no further access epoch of the window
// can begin. Kind: one-sided.
func (a Access) Complete(ctx context.Context) error {
	return a.e.conclude("Complete", func(e *epoch) error {
		ctx = wait.Context(ctx)
		for _, target := range e.peers {
			r, err := e.way().remote(ctx, target)
			if err != nil {
				return err
			}
			if r.Mem == nil {
				r.Peer.Order()
			}
		}
		return nil
	}, func(e *epoch) error { return e.mark(wait.Context(ctx), e.core.layout.completed) })
}

// Wait ends the exposure epoch (MPI_Win_wait). It waits until each origin has called Complete. This
// rank then sees the origins' puts and atomics. If ctx ends, a rank of the team is gone, or an
// origin has returned from its body without Complete, the epoch stays open. A call after the end, or while another goroutine waits, returns [ErrEpoch]. Kind: local.
func (x Exposure) Wait(ctx context.Context) error {
	return x.e.conclude("Wait", func(e *epoch) error { return e.await(wait.Context(ctx), e.core.layout.completed) },
		func(e *epoch) error { return e.clear(wait.Context(ctx), e.core.layout.completed) })
}

// Test is Wait that does not wait (MPI_Win_test). It reports whether the epoch has ended, and makes
// progress. As Wait, it returns [ErrEpoch] after the end, and [ErrFreed]; it does not report that a
// rank is gone. A program that calls it in a loop keeps a core from the ranks for which it waits:
// call Wait. Kind: local.
func (x Exposure) Test() (ended bool, err error) {
	err = x.e.conclude("Test", func(e *epoch) error {
		if e.way().ended() {
			return ErrFreed
		}
		if ended = e.marked(e.core.layout.completed); !ended {
			e.core.team.Progress()
			ended = e.marked(e.core.layout.completed)
		}
		if !ended {
			return errOpen
		}
		return nil
	}, func(e *epoch) error { return e.clear(context.Background(), e.core.layout.completed) })
	if errors.Is(err, errOpen) {
		return false, nil
	}
	return ended && err == nil, err
}

// errOpen says that an epoch goes on.
var errOpen = errors.New("the epoch is open")

// begin opens an epoch of a kind.
func (w *Window[T]) begin(kind **epoch, peers []int) (*epoch, error) {
	switch {
	case w.ended():
		return nil, ErrFreed
	case w.lease != nil:
		return nil, fmt.Errorf("attached memory has no epochs: %w", ErrPart)
	}
	seen := make([]bool, len(w.remotes))
	for _, p := range peers {
		if uint(p) >= uint(len(seen)) {
			return nil, fmt.Errorf("rank %d: %w [0, %d)", p, ErrRange, len(seen))
		}
		if seen[p] {
			return nil, fmt.Errorf("rank %d twice: %w", p, ErrRange)
		}
		seen[p] = true
	}
	w.epochs.mu.Lock()
	defer w.epochs.mu.Unlock()
	if *kind != nil {
		return nil, ErrEpoch
	}
	e := &epoch{core: w.core, peers: append([]int(nil), peers...), kind: kind}
	*kind = e
	return e, nil
}

// conclude ends an open epoch: it prepares the end, and then changes bits. If prepare fails, the
// epoch goes on. If change fails, no call can end it: a bit must not change twice.
func (e *epoch) conclude(op string, prepare, change func(*epoch) error) error {
	if e == nil {
		return &OpError{Op: op, Window: "(none)", Rank: -1, Target: -1, Index: -1, Err: ErrEpoch}
	}
	if !e.begin() {
		return e.core.fail(op, ErrEpoch)
	}
	if err := prepare(e); err != nil {
		e.goOn()
		if errors.Is(err, errOpen) {
			return err
		}
		return e.core.fail(op, err)
	}
	if err := change(e); err != nil {
		return e.core.fail(op, err)
	}
	e.end()
	return nil
}

// begin has this call end the epoch. It returns false if the epoch has ended, or another call ends it.
func (e *epoch) begin() bool {
	e.core.epochs.mu.Lock()
	defer e.core.epochs.mu.Unlock()
	if *e.kind != e || e.ending {
		return false
	}
	e.ending = true
	return true
}

// goOn lets the epoch go on after its end failed.
func (e *epoch) goOn() {
	e.core.epochs.mu.Lock()
	defer e.core.epochs.mu.Unlock()
	e.ending = false
}

// end frees the place of the epoch: the next one of its kind may begin.
func (e *epoch) end() {
	e.core.epochs.mu.Lock()
	defer e.core.epochs.mu.Unlock()
	*e.kind = nil
}

// mark adds this rank's bit at all peers, behind its earlier operations there.
func (e *epoch) mark(ctx context.Context, words int) error {
	c := e.way()
	for _, p := range e.peers {
		r, err := c.remote(ctx, p)
		if err == nil {
			err = r.PostFlag(ctx, fabric.Flag{Offset: words + c.team.Rank/64*8, Add: true, Value: 1 << (c.team.Rank % 64)})
		}
		if err != nil {
			return fmt.Errorf("rank %d: %w", p, err)
		}
	}
	return nil
}

// marked reports whether all peers' bits are here.
func (e *epoch) marked(words int) bool {
	for _, p := range e.peers {
		if !e.markedBy(p, words) {
			return false
		}
		if mutant.EpochOfOnePeer {
			return true
		}
	}
	return true
}

func (e *epoch) markedBy(peer, words int) bool {
	return e.core.word(words+peer/64*8).Load()>>(peer%64)&1 != 0
}

// await waits for all peers' bits, one after the other.
func (e *epoch) await(ctx context.Context, words int) error {
	for _, p := range e.peers {
		err := e.core.team.AwaitMember(ctx, p, func() bool { return e.way().ended() || e.markedBy(p, words) })
		if err != nil {
			return err
		}
		if mutant.EpochOfOnePeer {
			break
		}
	}
	if e.way().ended() {
		return ErrFreed
	}
	return nil
}

// clear takes the peers' bits back.
func (e *epoch) clear(ctx context.Context, words int) error {
	c := e.way()
	for _, p := range e.peers {
		at, bit := words+p/64*8, uint64(1)<<(p%64)
		if c.team.Coherent() {
			c.word(at).Add(-bit)
			continue
		}
		r, err := c.remote(ctx, c.team.Rank)
		if err == nil { // a rank does not wait for itself
			_, err = c.at(context.WithoutCancel(ctx), r, at, driver.AtomicAdd, -bit, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
