package rpipe

import (
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A writerEnd is a Writer without its element type.
type writerEnd struct {
	*pipe
	up       bool           // connected, and mem is there
	deserted bool           // the reader was closed before this end was connected
	direct   bool           // the reader is mapped: what is put is stored at once
	over     bool           // CloseWrite was called
	credit   uint64         // the last value of creditFlag
	near     near           // then
	health   uint64         // of near.team, as the reader was last seen to be well
	slot     rmalloc.Cursor // where the next notification goes
	mem      []byte         // the heap, as Mem shows it
	count    WriterStats
	heap     rmalloc.Heap
	tags     tagSource

	copier    copier // of blocks that lie elsewhere
	mostParts int    // bytes that it takes at once, 0 for none

	wants    uint64      // how often this end has told the reader that it waits
	asked    uint64      // credit as it said so last
	moved    func() bool // ends a wait when true
	watch    [2]int      // the flags among that
	finished bool        // the reader was told that nothing follows
	settled  bool        // nothing leaves from the stage any more
	fin, bye lastFlag    // tell that, and that nothing is put there any more

	wishes uint64          // for what Try calls said that they wait, unless the reader has answered
	noWait context.Context // has ended
}

// A tagSource takes in what the reader freed.
type tagSource interface {
	// take releases all that is known to be freed, in immediate mode after having
	// asked.
	take(ctx context.Context) error
	// ask is take for an end that has let the reader know that it waits. It sees
	// all that was freed before the reader knew.
	ask(ctx context.Context) error
}

func newWriterEnd(p *pipe) (*writerEnd, error) {
	heap, err := rmalloc.New(rmalloc.Config{Size: p.spec.heap, Blocks: p.spec.blocks, Policy: p.policy})
	if err != nil {
		return nil, err
	}
	w := &writerEnd{pipe: p, heap: *heap, slot: rmalloc.NewCursor(p.spec.notifications()), noWait: noWait()}
	w.moved, w.watch = w.hasMoved, [2]int{creditFlag, endFlag}
	taker := rmalloc.NewTagTaker(p.spec.heap, p.spec.blocks)
	if p.spec.sync == Deferred {
		w.tags = &announcedTags{w: w, taker: taker}
	} else {
		w.tags = newFetchedTags(w, taker)
	}
	return w, nil
}

// ready connects on first use, and returns why nothing can be written.
func (w *writerEnd) ready(ctx context.Context) error {
	if err := w.writable(); err != nil {
		return err
	}
	if !w.up {
		if err := w.comeUp(ctx); err != nil {
			return err
		}
	}
	if w.deserted || w.flag(endFlag) != 0 {
		return errReaderGone
	}
	return w.isWell()
}

// writable returns why nothing can be written at this end, nil if it can.
func (w *writerEnd) writable() error {
	if w.over && !w.closed.Load() {
		return errWritesOver
	}
	return w.usable()
}

// isWell returns what became of a mapped reader's rank, of which stores would tell
// nothing. It costs a load while no rank dies.
func (w *writerEnd) isWell() error {
	if w.near.team == nil {
		return nil
	}
	now := w.near.team.Health()
	if now == w.health {
		return nil
	}
	if err := w.fate(); err != nil {
		return err
	}
	w.health = now
	return nil
}

func (w *writerEnd) comeUp(ctx context.Context) error {
	if !w.joined.Load() {
		_, deserted, err := w.join(ctx, true)
		if err != nil {
			return err
		}
		w.deserted = deserted
	}
	remote := w.remote()
	w.direct = remote != nil
	switch {
	case w.spec.pull:
		w.mem = w.local()[w.writerHeap():]
	case w.direct:
		w.mem = remote[w.readerHeap():]
	default:
		mem, err := w.stage(w.spec.heap)
		if err != nil {
			return err
		}
		w.mem = mem
	}
	if by, ok := w.link.(inMemory); ok {
		w.near = by.near()
	}
	if by, ok := w.link.(copier); ok && !w.direct && !w.spec.pull && !w.twice {
		w.copier, w.mostParts = by, by.mostCopied()
	}
	w.up = true
	return nil
}

// alloc takes a block of n bytes in the shadow.
func (w *writerEnd) alloc(ctx context.Context, n int) (rmalloc.Addr, error) {
	if err := w.ready(ctx); err != nil {
		return 0, err
	}
	if err := w.tags.take(ctx); err != nil {
		return 0, err
	}
	a, err := w.tryAlloc(n)
	if err == nil && w.direct {
		atomics.PrefetchWrite(w.mem[a.Offset():])
	}
	if err == nil || !errors.Is(err, rmalloc.ErrFull) {
		return a, err
	}
	return w.allocLater(ctx, n)
}

func (w *writerEnd) tryAlloc(n int) (rmalloc.Addr, error) {
	a, err := w.heap.Alloc(n)
	return a, advise(err)
}

// allocLater waits for room.
func (w *writerEnd) allocLater(ctx context.Context, n int) (rmalloc.Addr, error) {
	w.count.MemoryWaits++
	for {
		if err := w.want(ctx, wantsMemory); err != nil {
			return 0, err
		}
		if err := w.tags.ask(ctx); err != nil {
			return 0, err
		}
		a, err := w.tryAlloc(n)
		if err == nil || !errors.Is(err, rmalloc.ErrFull) {
			return a, err
		}
		if err := w.pause(ctx); err != nil {
			return 0, fmt.Errorf("%w (while waiting for %d bytes of memory that the reader frees)", err, n)
		}
		if a, err := w.takeAndAlloc(ctx, n); err == nil || !errors.Is(err, rmalloc.ErrFull) {
			return a, err
		}
	}
}

// want tells the reader that this end is about to wait. The reader answers once, by
// credit that moves: an answer that comes ahead of the wait, and is taken in then, ends
// the wait all the same, since the reader does not announce what it frees behind it.
func (w *writerEnd) want(ctx context.Context, what uint64) error {
	w.asked = w.credit
	if err := w.putFlag(ctx, 0, nil, w.wantedFlag(), (w.wants+1)<<wantsBits|what); err != nil {
		return err
	}
	w.wants++
	w.wishes = what
	return w.tell()
}

// pause waits until something has moved.
func (w *writerEnd) pause(ctx context.Context) error {
	if err := w.await(ctx, w.watch[:], w.moved); err != nil {
		return err
	}
	if w.flag(endFlag) != 0 {
		return errReaderGone
	}
	return nil
}

func (w *writerEnd) hasMoved() bool {
	return w.flag(creditFlag) != w.asked || w.flag(endFlag) != 0
}

// takeCredit takes in how many blocks were read, which the reader says and
// nobody else could.
func (w *writerEnd) takeCredit() error {
	credit := w.flag(creditFlag)
	if credit == w.credit {
		return nil
	}
	if inFlight := uint32(w.count.Written) - uint32(credit); int(inFlight) > w.spec.width {
		return w.breaks(errCredit)
	}
	w.credit = credit
	return nil
}

// inFlight is how many blocks were written and are not known to be read.
func (w *writerEnd) inFlight() int { return int(uint32(w.count.Written) - uint32(w.credit)) }

// awaitWidth waits until one more block may be on its way.
func (w *writerEnd) awaitWidth(ctx context.Context) error {
	if ok, err := w.hasWidth(); ok || err != nil {
		return err
	}
	w.count.WidthWaits++
	for {
		if err := w.want(ctx, wantsWidth); err != nil {
			return err
		}
		if err := w.pause(ctx); err != nil {
			return fmt.Errorf("%w (while %d blocks are written and not read)", err, w.inFlight())
		}
		if ok, err := w.hasWidth(); ok || err != nil {
			return err
		}
	}
}

// write tells the reader of a block, behind the block itself.
func (w *writerEnd) write(ctx context.Context, a rmalloc.Addr) error {
	if w.writeNear(a) {
		return nil
	}
	return w.writeFrom(ctx, a, a.Offset())
}

// writeNear is writeFrom where all of it is a store. It is false, and has done
// nothing, where there is something else to be done, or to be said.
func (w *writerEnd) writeNear(a rmalloc.Addr) bool {
	if w.near.flags == nil || w.inFlight() >= w.spec.width || w.words[endFlag].Load() != 0 || w.near.team.Health() != w.health || w.usable() != nil {
		return false
	}
	n, ok := w.heap.Hand(a)
	if !ok {
		return false
	}
	flag := rmalloc.Flag{Kind: rmalloc.Data, Offset: a.Offset() / rmalloc.Granule, Length: n}
	w.near.flags[w.slot.Index()].Store(flag.Encode(w.slot.Lap())) // behind the block, and before the look at who waits
	w.near.bell.Ring()
	w.wrote(n)
	return true
}

// writeFrom is write of a block that lies elsewhere in the stage, if there is one.
func (w *writerEnd) writeFrom(ctx context.Context, a rmalloc.Addr, staged int) error {
	return w.writeBy(ctx, a, func(offset, n int, flag uint64) error {
		if w.direct || w.spec.pull || n == 0 {
			return w.putFlag(ctx, 0, nil, w.slot.Index(), flag)
		}
		return w.putStaged(ctx, w.readerHeap()+offset, staged, n, w.slot.Index(), flag, w.twice)
	})
}

// writeBy has put move a block, of so many bytes at an offset of the heap, and then
// its flag.
func (w *writerEnd) writeBy(ctx context.Context, a rmalloc.Addr, put func(offset, n int, flag uint64) error) error {
	if err := w.ready(ctx); err != nil {
		return err
	}
	if err := w.awaitWidth(ctx); err != nil {
		return err
	}
	offset, n, err := w.heap.Range(a)
	if err != nil {
		return err
	}
	flag := rmalloc.Flag{Kind: rmalloc.Data, Offset: offset / rmalloc.Granule, Length: n}.Encode(w.slot.Lap())
	if err := put(offset, n, flag); err != nil {
		return err
	}
	_ = w.heap.Send(a) // it is this end's: Range has said so
	w.wrote(n)
	_ = w.tell() // the block is the reader's; a failure is the peer's, which the next call meets
	return nil
}

// wrote counts a block whose notification has left.
func (w *writerEnd) wrote(n int) {
	w.slot.Step()
	w.count.Written++
	w.count.Bytes += uint64(n)
}

// free gives back a block that was not written.
func (w *writerEnd) free(a rmalloc.Addr) error { return w.heap.Free(a) }

// reclaim gives back what a tag says.
func (w *writerEnd) reclaim(r rmalloc.Range) error {
	if err := w.heap.Release(r.Offset, r.Count); err != nil {
		return w.breaks(err)
	}
	w.count.Tags++
	return nil
}

// flushed returns when all that was written is at the reader.
func (w *writerEnd) flushed(ctx context.Context) error {
	if err := w.ready(ctx); err != nil {
		return err
	}
	return w.flush(ctx)
}
