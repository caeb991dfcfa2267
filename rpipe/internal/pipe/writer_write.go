package pipe

import (
	"context"
	"math"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/rmalloc"
)

// Write tells the reader of a block, behind the block itself.
func (w *Writer) Write(ctx context.Context, a rmalloc.Addr) error {
	if w.writeNear(a) {
		return nil
	}
	return w.WriteFrom(ctx, a, a.Offset())
}

// writeNear is WriteFrom where all of it is a store. It is false, and has done
// nothing, where there is something else to be done, or to be said.
func (w *Writer) writeNear(a rmalloc.Addr) bool {
	if w.near.bell == nil || w.Set != nil && w.Word == nil || w.InFlight() >= w.Spec.Width || w.Words[EndFlag].Load() != 0 || w.near.team.Health() != w.health || w.Usable() != nil {
		return false
	}
	slot, n := w.Heap.Hand(a)
	if slot == 0 {
		return false
	}
	flag := rmalloc.Flag{Kind: rmalloc.Data, Offset: a.Offset() / rmalloc.Granule, Length: n}
	switch {
	case n <= w.Small:
		flag.Kind = rmalloc.Inline
		w.pack(slot, n)
		w.lines.give(slot)
	case n >= longFrom:
		w.storeLong(slot, a.Offset(), n)
	}
	// The flag is stored behind the block's bytes. The look of Ring for goroutines that wait may
	// overtake it: they look again after pauses ([wait.Stored]).
	atomics.StoreRelease(&w.near.flags[w.place()], flag.Encode(w.slot.Lap()))
	if w.Word != nil {
		w.TellMapped()
	}
	w.near.bell.Ring()
	w.wrote(n)
	if n <= w.Small { // the reader's core holds the next entry
		atomics.PrefetchWrite(atomics.Bytes(w.near.flags[w.place():]))
	}
	return true
}

// WriteFrom is write of a block that lies elsewhere in the stage, if there is one.
func (w *Writer) WriteFrom(ctx context.Context, a rmalloc.Addr, staged int) error {
	return w.writeFirstFrom(ctx, a, staged, math.MaxInt)
}

// WriteFirst is write of a block's first bytes. Once they are written, the memory behind
// them is free.
func (w *Writer) WriteFirst(ctx context.Context, a rmalloc.Addr, bytes int) error {
	return w.writeFirstFrom(ctx, a, a.Offset(), bytes)
}

// writeFirstFrom writes at most the first bytes of a block. They lie at an offset of the stage, if there is
// one.
func (w *Writer) writeFirstFrom(ctx context.Context, a rmalloc.Addr, staged, most int) error {
	return w.writeBy(ctx, a, most, func(offset, n int, flag uint64) error {
		if w.Direct || w.Spec.pull || n == 0 {
			return w.PutFlag(ctx, 0, nil, w.place(), flag)
		}
		return w.PutStaged(ctx, w.readerHeap()+offset, staged, n, w.place(), flag)
	})
}

// WriteCopied is write of a block whose content lies elsewhere, of at most MostCopied bytes.
func (w *Writer) WriteCopied(ctx context.Context, a rmalloc.Addr, src []byte) error {
	return w.writeBy(ctx, a, math.MaxInt, func(offset, _ int, flag uint64) error {
		return w.PutCopied(ctx, w.readerHeap()+offset, src, w.place(), flag)
	})
}

// writeBy has put move a block, of so many bytes at an offset of the heap, and then
// its flag. It writes at most the block's first most bytes, and frees the memory behind
// them.
func (w *Writer) writeBy(ctx context.Context, a rmalloc.Addr, most int, put func(offset, n int, flag uint64) error) error {
	if err := w.AwaitWidth(ctx); err != nil {
		return err
	}
	offset, n, err := w.Heap.Range(a)
	if err != nil {
		return err
	}
	first := min(n, most)
	flag := rmalloc.Flag{Kind: rmalloc.Data, Offset: offset / rmalloc.Granule, Length: first}
	if n <= w.Small {
		flag.Kind = rmalloc.Inline
		w.pack(w.Heap.Slot(a), first)
	}
	w.storeLong(w.Heap.Slot(a), offset, first)
	if err := put(offset, first, flag.Encode(w.slot.Lap())); err != nil {
		return err
	}
	mutant.Hesitate(mutant.Operation)
	if first < n {
		n, _ = first, w.Heap.Shrink(a, first)
	}
	w.lines.give(w.Heap.Slot(a))
	_ = w.Heap.Send(a) // it is this end's: Range has said so
	w.wrote(n)
	_ = w.Tell() // the block is the reader's; a failure is the peer's, which the next call meets
	return nil
}

// place returns the flag at which the next notification goes.
func (w *Writer) place() int { return w.Notification(w.slot.Index()) }

// wrote counts a block whose notification has left.
func (w *Writer) wrote(n int) {
	w.slot.Step()
	w.count.Written++
	w.count.Bytes += uint64(n)
}
