package pipe

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// A Writer is a Writer without its element type.
type Writer struct {
	*End
	Up     bool           // connected, and mem is there
	Direct bool           // the reader is mapped: a put is a store
	over   bool           // CloseWrite was called
	Credit uint64         // the last value of CreditFlag
	near   near           // then
	health uint64         // of near.team, as the reader was last seen to be well
	slot   rmalloc.Cursor // where the next notification goes
	Mem    []byte         // the heap, as blocks that are neither small nor long show it
	Small  int            // bytes of the largest block whose bytes travel in the entry; -1: none do
	lines  bySlot[line]   // where the program fills these
	filled bySlot[[]byte] // where the program fills long blocks
	count  WriterStats
	Heap   rmalloc.Heap
	Tags   tagSource

	MostCopied int // bytes of a block that lies elsewhere, 0: the block must lie in Mem

	wants    uint64      // how often this end has told the reader that it waits
	toldAt   uint64      // credit as it said so last
	moved    func() bool // ends a wait when true
	finished bool        // the reader was told that nothing follows
	gaveUp   bool        // it was told so by an end that is corrupt
	settled  bool        // nothing leaves from the stage any more
	fin, bye lastFlag    // tell that, and that nothing is put there any more

	wishes uint64          // for what Try calls said that they wait, unless the reader has responded
	Now    context.Context // of Try calls, as NoWait returns it
}

// A tagSource takes in what the reader freed.
type tagSource interface {
	// Take releases all that is known to be freed. In immediate mode it reads what the
	// reader has freed first.
	Take(ctx context.Context) error
	// TakeBehind is Take for an end that has let the reader know that it waits. It sees
	// all that was freed before the reader knew.
	TakeBehind(ctx context.Context) error
}

// NewWriterEnd makes the part of an end that is a writer's.
func NewWriterEnd(p *End) (*Writer, error) {
	heap, err := rmalloc.New(rmalloc.Config{Size: p.Spec.Heap, Blocks: p.Options.Blocks, Policy: p.Policy})
	if err != nil {
		return nil, err
	}
	w := &Writer{End: p, Heap: *heap, slot: rmalloc.NewCursor(p.Spec.notifications()), Small: -1, Now: NoWait()}
	p.Role = w
	w.moved = w.hasMoved
	taker := rmalloc.NewTagTaker(p.Spec.Heap, p.Spec.blocks)
	if p.Spec.sync == Deferred {
		w.Tags = &announcedTags{w: w, taker: taker}
	} else {
		w.Tags = &fetchedTags{w: w, taker: taker, window: make([]byte, 8*tagWindow)}
	}
	return w, nil
}

// Ready connects on first use, and returns why nothing can be written.
func (w *Writer) Ready(ctx context.Context) error {
	if err := w.writable(); err != nil {
		return err
	}
	if !w.Up {
		if err := w.comeUp(ctx); err != nil {
			return err
		}
	}
	if w.Deserted || w.Flag(EndFlag) != 0 {
		return ErrReaderGone
	}
	return w.isWell()
}

// writable returns why nothing can be written at this end, nil if it can.
func (w *Writer) writable() error {
	if w.over && !w.Closed.Load() {
		return errWritesOver
	}
	return w.Usable()
}

// isWell returns what became of a mapped reader's rank, of which stores would tell
// nothing. It costs a load while no rank dies.
func (w *Writer) isWell() error {
	if w.near.team == nil {
		return nil
	}
	now := w.near.team.Health()
	if now == w.health {
		return nil
	}
	if err := w.Fate(); err != nil {
		return err
	}
	w.health = now
	return nil
}

// comeUp connects to the reader and finds the memory in which blocks are filled: the writer's own of a
// pull pipe, the reader's where it is mapped, else a stage.
func (w *Writer) comeUp(ctx context.Context) error {
	if err := w.meet(ctx); err != nil {
		return err
	}
	remote := w.Remote()
	w.Direct = remote != nil
	switch {
	case w.Spec.pull:
		w.Mem = w.Data[w.writerHeap():]
	case w.Direct:
		w.Mem = remote[w.readerHeap():]
	default:
		mem, err := w.Stage(w.Spec.Heap)
		if err != nil {
			return err
		}
		w.Mem = mem
	}
	w.near = w.nearPeer()
	if w.near.flags != nil && w.entry > 0 {
		w.Small = rmalloc.MostInline
	}
	if !w.Direct && !w.Spec.pull && !w.Twice {
		w.MostCopied = w.far.Load().MaxCopied
	}
	w.Up = true
	return nil
}

// meet connects to the reader, and waits until that opens its end. A Try call waits for an
// response of the reader's rank alone, for lastMoment at most.
func (w *Writer) meet(ctx context.Context) error {
	switch {
	case w.Joined.Load():
		return nil
	case !tries(ctx):
		return w.Join(ctx, true)
	}
	brief, cancel := aMoment()
	defer cancel()
	if err := w.Join(brief, false); err != nil || w.Joined.Load() {
		return err
	}
	return w.noneYet()
}

// Alloc takes a block of n bytes in the shadow. It connects for no block that never fits.
func (w *Writer) Alloc(ctx context.Context, n int) (rmalloc.Addr, error) {
	if !w.Up {
		if err := cmp.Or(w.writable(), w.Heap.Fits(n)); err != nil {
			return 0, Advise(err)
		}
	}
	if err := w.Ready(ctx); err != nil {
		return 0, err
	}
	if w.Word != nil {
		atomics.PrefetchWrite(atomics.Bytes(w.near.flags[w.place():]))
	}
	a, err := w.takeAndAlloc(ctx, n)
	if err == nil && w.Direct && n > w.Small && !w.isLong(n) {
		atomics.PrefetchWrite(w.Mem[a.Offset():])
	}
	if err == nil || !errors.Is(err, rmalloc.ErrFull) {
		return a, err
	}
	return w.allocLater(ctx, n)
}

// allocLater waits for room.
func (w *Writer) allocLater(ctx context.Context, n int) (a rmalloc.Addr, err error) {
	err = w.await(ctx, WantsMemory, n, func() (ok bool, err error) {
		if a, err = w.takeAndAlloc(ctx, n); errors.Is(err, rmalloc.ErrFull) {
			return false, nil
		}
		return err == nil, err
	})
	return a, err
}

// takeAndAlloc takes in freed memory and allocates a block in the shadow heap.
func (w *Writer) takeAndAlloc(ctx context.Context, n int) (rmalloc.Addr, error) {
	if err := w.Tags.Take(ctx); err != nil {
		return 0, err
	}
	a, err := w.Heap.Alloc(n)
	return a, Advise(err)
}

// Want tells the reader that this end is about to wait. The reader responds once, by
// credit that moves. The response may come ahead of the wait, and be taken in then. It ends the
// wait all the same, since the reader does not announce what it frees behind it.
func (w *Writer) Want(ctx context.Context, what uint64) error {
	w.toldAt = w.Credit
	if err := w.PutFlag(ctx, 0, nil, w.WantedFlag(), (w.wants+1)<<WantsBits|what); err != nil {
		return err
	}
	w.wants++
	w.wishes = what
	return w.Tell()
}

// await waits until look finds room for one more block, of n bytes: the reader has made some, after this
// end has told it that it waits. A Try call makes progress, looks once more, and waits for nothing.
func (w *Writer) await(ctx context.Context, what uint64, n int, look func() (bool, error)) error {
	if tries(ctx) {
		w.Progress()
		if ok, err := look(); ok || err != nil {
			return err
		}
		return w.wish(what)
	}
	w.count.waitsFor(what)
	for {
		if err := w.Want(ctx, what); err != nil {
			return err
		}
		if what == WantsMemory {
			if err := w.Tags.TakeBehind(ctx); err != nil {
				return err
			}
			if ok, err := look(); ok || err != nil {
				return err
			}
		}
		if err := w.Await(ctx, w.moved); err != nil {
			return fmt.Errorf("%w (while %s)", err, w.lacking(what, n))
		}
		if w.Flag(EndFlag) != 0 {
			return ErrReaderGone
		}
		if ok, err := look(); ok || err != nil {
			return err
		}
	}
}

// lacking returns a clause that says why this end waits.
func (w *Writer) lacking(what uint64, n int) string {
	if what == WantsWidth {
		return fmt.Sprintf("%d blocks are written and not read", w.InFlight())
	}
	return fmt.Sprintf("waiting for %d bytes of memory that the reader frees", n)
}

// hasMoved reports whether the reader has announced something, or has gone, since this end told it that
// it waits.
func (w *Writer) hasMoved() bool {
	return w.Flag(CreditFlag) != w.toldAt || w.Flag(EndFlag) != 0
}

// TakeCredit takes in how many blocks the reader has read, as it announced.
func (w *Writer) TakeCredit() error {
	credit := w.Flag(CreditFlag)
	if credit == w.Credit {
		return nil
	}
	if inFlight := uint32(w.count.Written) - uint32(credit); int(inFlight) > w.Spec.Width {
		return w.Breaks(errCredit)
	}
	w.Credit = credit
	return nil
}

// InFlight is how many blocks were written and are not known to be read.
func (w *Writer) InFlight() int { return int(uint32(w.count.Written) - uint32(w.Credit)) }

// AwaitWidth waits until one more block may be on its way.
func (w *Writer) AwaitWidth(ctx context.Context) error {
	if err := w.Ready(ctx); err != nil {
		return err
	}
	if ok, err := w.hasWidth(); ok || err != nil {
		return err
	}
	return w.await(ctx, WantsWidth, 0, w.hasWidth)
}

// Free gives back a block that was not written.
func (w *Writer) Free(a rmalloc.Addr) error {
	slot := w.Heap.Slot(a)
	w.lines.give(slot)
	w.filled.give(slot)
	return w.Heap.Free(a)
}

// reclaim gives back what a tag says.
func (w *Writer) reclaim(r rmalloc.Range) error {
	if err := w.Heap.Release(r.Offset, r.Count); err != nil {
		return w.Breaks(err)
	}
	w.count.Tags++
	return nil
}

// Flushed returns when all that was written is at the reader.
func (w *Writer) Flushed(ctx context.Context) error {
	if err := w.Ready(ctx); err != nil {
		return err
	}
	return w.Flush(ctx)
}
