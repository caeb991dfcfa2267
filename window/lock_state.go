package window

import (
	"context"
	"errors"
	"math"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A window has one lock at each rank, its home. The home has three things for it:
//
//	state:    63         62       61             32 31           0
//	          abandoned  waiters  writer's rank + 1 shared holders
//	tickets:  grows by one for each rank that begins to wait
//	entries:  a word for each rank: its ticket and mode while it waits
//
// A rank takes a free lock by one atomic: a writer swaps 0 for its rank, and a reader adds one to
// the shared holders. A reader that then finds a writer or waiters in the old state takes its one
// back. So neither loops, and the state counts some readers that hold nothing.
//
// A rank that does not get the lock takes a ticket, writes its entry, sets waiters, and sleeps.
// While waiters is set no rank takes the lock by itself. The holder hands it over:
//
//   - A writer releases by a swap of its rank for 0, which fails if waiters is set. It then still
//     has the lock, and decides.
//   - The reader that takes the last shared holder out, and finds waiters, swaps its rank into the
//     writer's place, and decides. So does each rank whose atomic leaves waiters alone in the state.
//   - A writer that ceases to wait decides likewise while readers have the lock: further readers may
//     have waited only for that writer.
//
// A decider clears waiters, reads all entries, and chooses. It marks the chosen entries, and sets
// waiters again if others wait. It puts the chosen ranks into the state in its own place, and tells
// them. A rank that begins to wait meanwhile sets waiters behind its entry: either the decider
// reads the entry, or waiters stays set.
//
// Readers and writers take turns: behind a writer all readers that wait get the lock, behind readers
// the writer that has waited longest. So a reader waits for one writer, and a writer for the
// writers ahead of it and as many groups of readers. That is phase-fair in the sense of Brandenburg
// and Anderson, Spin-based reader-writer synchronization for multiprocessor real-time systems,
// Real-Time Systems 46 (2010). As in the queue of Mellor-Crummey and Scott (ACM TOCS 9, 1991) a rank
// waits at a word of its own memory. Their linked list, which Schmid, Besta and Hoefler carry to
// remote memory (High-performance distributed RMA locks, HPDC 2016), breaks where a waiting rank
// dies. Entries at the home do not: each rank's is its own.
const (
	abandonedBit = uint64(1) << 63
	waitersBit   = uint64(1) << 62
	writerShift  = 32
	readersMask  = uint64(1)<<writerShift - 1
	ticketAt     = 8 // behind the state
)

// A latch is the lock of one home, as this rank reaches it. Its atomics look at no context: a rank
// that gave one up would not know the state.
type latch struct {
	c    *core
	r    *fabric.Remote
	home int
}

func (l latch) at(offset int, op driver.AtomicOp, operand, compare uint64) (uint64, error) {
	mutant.Hesitate(mutant.Message)
	return l.c.at(context.Background(), l.r, offset, op, operand, compare)
}

// update is at without a result, for which it does not wait. Later atomics take effect behind it.
func (l latch) update(offset int, op driver.AtomicOp, operand uint64) error {
	if l.r.Mem != nil {
		_, err := l.at(offset, op, operand, 0)
		return err
	}
	return l.r.Update(context.Background(), offset, fabric.Atomic{Op: op, Width: 8, Operand: operand})
}

// state changes the state and returns its earlier value.
func (l latch) state(op driver.AtomicOp, operand, compare uint64) (uint64, error) {
	if l.r.Mem != nil && op == driver.AtomicCmpSwap { // a free lock costs two of these
		if atomics.Word64(l.r.Mem[l.c.layout.lock:]).CompareAndSwap(compare, operand) {
			return compare, nil
		}
	}
	return l.at(l.c.layout.lock, op, operand, compare)
}

// writer is a rank in the place of the state's writer.
func (l latch) writer(rank int) uint64 { return uint64(rank+1) << writerShift }

func (l latch) me() uint64 { return l.writer(l.c.team.Rank) }

// writerOf returns the rank in the place of the state's writer, -1 if there is none.
func writerOf(state uint64) int { return int(state&^(abandonedBit|waitersBit)>>writerShift) - 1 }

// grab is the atomic by which a rank takes a free lock.
func (l latch) grab(m Mode) fabric.Atomic {
	if m == Exclusive {
		return fabric.Atomic{Op: driver.AtomicCmpSwap, Width: 8, Operand: l.me()}
	}
	return fabric.Atomic{Op: driver.AtomicAdd, Width: 8, Operand: 1}
}

// got reports whether a rank has the lock whose grab found the state.
func got(m Mode, state uint64) bool { return state == 0 || m == Shared && state&^readersMask == 0 }

// try takes the lock if it is free and no rank waits for it. It returns the state that it found.
func (l latch) try(m Mode) (state uint64, ok bool, err error) {
	if m == Shared && l.r.Mem != nil { // spares the way back
		if state, _ = l.state(driver.AtomicLoad, 0, 0); !got(m, state) {
			return state, false, nil
		}
	}
	a := l.grab(m)
	state, err = l.state(a.Op, a.Operand, a.Compare)
	if err != nil || got(m, state) {
		return state, err == nil, err
	}
	return state, false, l.back(m)
}

// back takes back what a grab has changed that did not get the lock.
func (l latch) back(m Mode) error {
	if m == Exclusive {
		return nil
	}
	return l.release(Shared)
}

// drop is the atomic that gives the lock back. Where ranks wait, it may leave that to pass.
func (l latch) drop(m Mode) fabric.Atomic {
	if m == Exclusive {
		return fabric.Atomic{Op: driver.AtomicCmpSwap, Width: 8, Compare: l.me()}
	}
	return fabric.Atomic{Op: driver.AtomicAdd, Width: 8, Operand: math.MaxUint64}
}

// passes reports whether this rank, whose drop found the state, hands over the lock.
func (l latch) passes(m Mode, state uint64) bool {
	if m == Exclusive {
		return state != l.me()
	}
	return state-1 == waitersBit
}

// pass hands over a lock behind a drop.
func (l latch) pass(m Mode) error {
	if m == Exclusive {
		return l.decide(Exclusive, false)
	}
	return l.inherit(waitersBit)
}

// release gives the lock back. The first atomic stands behind this rank's posts.
func (l latch) release(m Mode) error {
	a := l.drop(m)
	old, err := l.state(a.Op, a.Operand, a.Compare)
	if err == nil && l.passes(m, old) {
		err = l.pass(m)
	}
	return err
}

// inherit has this rank decide if ranks wait and no writer has the lock. seen is a guess of the state.
func (l latch) inherit(seen uint64) error {
	claimed, readers, err := l.claim(seen)
	if claimed {
		err = l.decide(Shared, readers)
	}
	return err
}

// claim puts this rank into the writer's place if ranks wait and no writer has the lock. It reports
// whether readers may have the lock.
func (l latch) claim(seen uint64) (claimed, readers bool, err error) {
	for seen&waitersBit != 0 && seen&^(waitersBit|readersMask) == 0 {
		old := seen
		if seen, err = l.state(driver.AtomicCmpSwap, old|l.me(), old); err != nil || seen == old {
			return err == nil, old&readersMask != 0, err
		}
	}
	return false, false, nil
}

// decide hands over the lock, whose state has this rank in the writer's place, or frees it. The last
// holders had it in mode behind. While readers may still have the lock only further readers get it.
func (l latch) decide(behind Mode, readers bool) error {
	for {
		if err := l.update(l.c.layout.lock, driver.AtomicAnd, ^waitersBit); err != nil {
			return err
		}
		l.r.Peer.Order()
		entries, err := l.entries()
		if err != nil {
			return err
		}
		chosen, others := l.choose(entries, behind, readers)
		if len(chosen) > 0 {
			if chosen, err = l.mark(chosen, entries); err != nil {
				return err
			}
			if len(chosen) == 0 {
				continue // they wait no more
			}
		}
		state, err := l.handOver(chosen, entries, others)
		if err != nil || state&^(waitersBit|readersMask) != 0 || state&waitersBit == 0 {
			return err
		}
		// Ranks wait, and no writer has the lock. Behind the writers among them the last reader
		// decides. Without them ranks began to wait, or gave up, behind this rank's look.
		if others && state&readersMask != 0 {
			if waiting, err := l.writerWaits(); waiting || err != nil {
				return err
			}
		}
		var claimed bool
		if claimed, readers, err = l.claim(state); !claimed {
			return err
		}
		behind = Shared
	}
}

// mark claims the entries of the chosen ranks. It returns those ranks that still wait.
func (l latch) mark(chosen []int, entries []uint64) ([]int, error) {
	left := chosen[:0]
	for _, rank := range chosen {
		seen, err := l.at(l.entryOf(rank), driver.AtomicCmpSwap, claimedBy(l.c.team.Rank), entries[rank])
		if err != nil {
			return nil, err
		}
		if seen == entries[rank] {
			left = append(left, rank)
		}
	}
	return left, nil
}

// handOver puts the chosen ranks into the state in this rank's place, and tells them. It returns the
// state.
func (l latch) handOver(chosen []int, entries []uint64, others bool) (uint64, error) {
	if others {
		if err := l.update(l.c.layout.lock, driver.AtomicOr, waitersBit); err != nil {
			return 0, err
		}
	}
	change := uint64(len(chosen)) - l.me()
	if len(chosen) > 0 && modeOf(entries[chosen[0]]) == Exclusive {
		change = l.writer(chosen[0]) - l.me()
	}
	old, err := l.state(driver.AtomicAdd, change, 0)
	if err != nil {
		return 0, err
	}
	var errs []error
	for _, rank := range chosen {
		errs = append(errs, l.tell(rank, 1))
	}
	return old + change, errors.Join(errs...)
}

// abandon marks a lock that this rank holds and will not release. Each rank that waits for it
// hears of it, and later ones see the mark.
func (l latch) abandon() error {
	seen, err := l.state(driver.AtomicLoad, 0, 0)
	for err == nil && seen&abandonedBit == 0 {
		old := seen
		if seen, err = l.state(driver.AtomicCmpSwap, abandonedBit|l.me()|old&(waitersBit|readersMask), old); seen == old && err == nil {
			return l.tellOfAbandoned()
		}
	}
	return err
}

// tellOfAbandoned tells all ranks that wait that the holder has died with the lock.
func (l latch) tellOfAbandoned() error {
	entries, err := l.entries()
	errs := []error{err}
	for rank, e := range entries {
		if waits(e) {
			errs = append(errs, l.tell(rank, abandonedBit))
		}
	}
	return errors.Join(errs...)
}

// abandonedBy returns an error that names the rank that abandoned a lock in this state, nil
// if none has.
func (l latch) abandonedBy(state uint64) error {
	if state&abandonedBit == 0 {
		return nil
	}
	e := &fabric.RankError{Rank: -1, Kind: ErrHeld, Cause: "it freed the window or closed the job while it held the lock; unlock before"}
	if rank := writerOf(state); rank >= 0 && rank < len(l.c.team.Members) {
		e.Rank = l.c.team.Members[rank]
	}
	return e
}
