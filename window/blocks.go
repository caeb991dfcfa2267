package window

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
)

// Blocks describe the elements that one call puts or gets: blocks of adjacent elements. At the
// target their places count from the call's index, at the caller from the beginning of its slice.
// The two sides of a call have the same number of elements, which the call moves in order; all else may
// differ. The zero Blocks are one block, as long as the other side. If both sides are zero, they are
// as long as the caller's slice.
//
// Put a column of an array of width columns to the right neighbor, and a face of a cube:
//
//	column := window.Strided(rows, 1, width)
//	err = w.PutBlocks(ctx, right, 0, column, w.Local()[width-2:], column)
//	face := window.Box([]int{n, n, n}, []int{0, 0, n - 1}, []int{n, n, 1})
//	err = w.GetBlocks(ctx, left, 0, face, halo, window.Blocks{})
//
// Blocks may be listed in any order and may overlap. Where the blocks of a destination overlap, each
// element gets one of its values, and the program cannot tell which. MPI-4.1 has these layouts as
// derived datatypes (section 5.1), OpenSHMEM 1.5 as shmem_iput and shmem_iget (section 9.5).
type Blocks struct{ layout blocks.Layout }

// Strided describes count blocks of block elements, whose beginnings lie stride elements apart.
// stride may be negative. It is MPI_Type_vector, and with block 1 the stride of shmem_iput.
// A negative count or block is an [ErrRange] of the call that takes it. Kind: local.
func Strided(count, block, stride int) Blocks { return Blocks{blocks.Strided(count, block, stride)} }

// Indexed describes blocks of block elements at the offsets, none of them negative: it is
// MPI_Type_create_indexed_block. The call that takes the Blocks uses the list until it returns. Kind: local.
func Indexed(offsets []int, block int) Blocks { return Blocks{blocks.Indexed(offsets, block)} }

// Ragged is Indexed for blocks of different lengths, one for each offset: MPI_Type_indexed. Kind:
// local.
func Ragged(offsets, lengths []int) Blocks { return Blocks{blocks.Ragged(offsets, lengths)} }

// Box describes a part of an array of 1 to 4 dimensions, the last of which is the fastest. The part
// begins at start and has size elements in each dimension: it is MPI_Type_create_subarray in the
// order of C. A part that is not all in the array is an [ErrRange] of the call that takes it. Kind:
// local.
func Box(shape, start, size []int) Blocks { return Blocks{blocks.Box(shape, start, size)} }

// PutBlocks stores the blocks from of src in the blocks to of the target, counted from index on. It
// is [Window.Put] of many blocks: it returns at local completion, and the blocks are not ordered
// among each other. On mapped memory it is a loop of copies. Over a connection, blocks of less than 4 KiB
// share requests of up to 16 KiB, and longer ones take a request each. An RDMA device takes one for each block.
//
// It returns [ErrRange] if blocks lie beyond src or the target's elements, or if the two sides have
// different numbers of elements. It then changes nothing. Kind: one-sided.
func (w *Window[T]) PutBlocks(ctx context.Context, target, index int, to Blocks, src []T, from Blocks) error {
	s, err := w.span(target, index, &to, len(src), &from)
	if err == nil {
		if v := w.mapped(target); v != nil {
			v.put(&s, &to, src, &from)
			return nil
		}
		_, err = w.putBlocks(ctx, &s, &to, src, &from, fabric.Put{})
	}
	return w.failAt("PutBlocks", target, index, s.size, err)
}

// StartPutBlocks is PutBlocks that does not wait. The caller must not change src before Request.Wait
// returns. ctx bounds finding the target and room in the queue. Kind: one-sided.
func (w *Window[T]) StartPutBlocks(ctx context.Context, target, index int, to Blocks, src []T, from Blocks) (Request, error) {
	s, err := w.span(target, index, &to, len(src), &from)
	var inner fabric.Request
	if err == nil {
		if v := w.mapped(target); v != nil {
			v.put(&s, &to, src, &from)
			return Request{}, nil
		}
		inner, err = w.putBlocks(ctx, &s, &to, src, &from, fabric.Put{Lent: true})
	}
	return w.request("StartPutBlocks", target, index, s.size, inner, err)
}

// PutBlocksNotify is PutBlocks and a signal behind the last block: a rank that sees the signal sees all
// blocks. See [Window.PutNotify]. Kind: one-sided.
func (w *Window[T]) PutBlocksNotify(ctx context.Context, target, index int, to Blocks, src []T, from Blocks, signal Signal) error {
	_, n, err := w.notifyBlocks(ctx, target, index, &to, src, &from, signal, false)
	return w.failAt("PutBlocksNotify", target, index, n, err)
}

// StartPutBlocksNotify is PutBlocksNotify that does not wait. The caller must not change src before
// Request.Wait returns. ctx bounds finding the target and room in the queue. Kind: one-sided.
func (w *Window[T]) StartPutBlocksNotify(ctx context.Context, target, index int, to Blocks, src []T, from Blocks, signal Signal) (Request, error) {
	inner, n, err := w.notifyBlocks(ctx, target, index, &to, src, &from, signal, true)
	return w.request("StartPutBlocksNotify", target, index, n, inner, err)
}

// notifyBlocks returns the request and the number of elements.
func (w *Window[T]) notifyBlocks(ctx context.Context, target, index int, to *Blocks, src []T, from *Blocks, signal Signal, lent bool) (fabric.Request, int, error) {
	if uint(signal.Slot) >= uint(w.layout.slots) {
		return fabric.Request{}, 0, fmt.Errorf("slot %d: %w [0, %d)", signal.Slot, ErrRange, w.layout.slots)
	}
	s, err := w.span(target, index, to, len(src), from)
	if err != nil {
		return fabric.Request{}, s.size, err
	}
	flag := w.flag(signal)
	if v := w.mapped(target); v != nil {
		v.put(&s, to, src, from)
		v.remote.StoreFlag(&flag)
		return fabric.Request{}, s.size, nil
	}
	inner, err := w.putBlocks(ctx, &s, to, src, from, fabric.Put{Tell: fabric.TellByFlag, Flag: flag, Lent: lent})
	return inner, s.size, err
}

// GetBlocks fills the blocks into of dst from the blocks from of the target, counted from index on.
// They are filled if GetBlocks returns nil. The caller owns dst again even if it returns an error.
// Where the target is not mapped, blocks of less than 4 KiB share requests of up to 64 KiB. On an RDMA
// device each block takes one read. Blocks at a stride with 1 KiB or less between them take one read
// for each 256 KiB there, with the elements between them.
// See [Window.PutBlocks]. Kind: one-sided.
func (w *Window[T]) GetBlocks(ctx context.Context, target, index int, from Blocks, dst []T, into Blocks) error {
	s, err := w.span(target, index, &from, len(dst), &into)
	if err == nil {
		if v := w.mapped(target); v != nil {
			v.get(&s, &from, dst, &into)
			return nil
		}
		var inner fabric.Request
		if inner, err = w.getBlocks(ctx, &s, &from, dst, &into); err == nil {
			err = inner.Wait(ctx)
		}
	}
	return w.failAt("GetBlocks", target, index, s.size, err)
}

// StartGetBlocks is GetBlocks that need not wait. Where the target is not mapped, it waits for all
// requests but the last, and on an RDMA device for all. The slice dst holds the elements once
// Request.Wait has returned nil. The context bounds finding the target and the requests that it
// waits for. Kind: one-sided.
func (w *Window[T]) StartGetBlocks(ctx context.Context, target, index int, from Blocks, dst []T, into Blocks) (Request, error) {
	s, err := w.span(target, index, &from, len(dst), &into)
	var inner fabric.Request
	if err == nil {
		if v := w.mapped(target); v != nil {
			v.get(&s, &from, dst, &into)
			return Request{}, nil
		}
		inner, err = w.getBlocks(ctx, &s, &from, dst, &into)
	}
	return w.request("StartGetBlocks", target, index, s.size, inner, err)
}

// A span is the part of the target's elements that holds all blocks of a call.
type span struct {
	target, index int // of the call
	from, to      int // elements
	size          int // elements in blocks
}

// span checks a call. It makes zero Blocks as long as the other side.
func (c *core) span(target, index int, there *Blocks, local int, here *Blocks) (s span, err error) {
	if target == Null {
		return span{}, errNull
	}
	n := local
	var from, to int
	if !here.layout.Whole() {
		if n, from, to, err = here.layout.Measure(); err != nil {
			return span{}, fmt.Errorf("blocks here: %w: %w", ErrRange, err)
		}
	}
	s = span{target: target, index: index}
	if there.layout.Whole() {
		there.layout.Block(n)
	}
	if s.size, s.from, s.to, err = there.layout.Measure(); err != nil {
		return span{}, fmt.Errorf("blocks of the target: %w: %w", ErrRange, err)
	}
	if here.layout.Whole() {
		n, to = s.size, s.size
		here.layout.Block(n)
	}
	limit := c.length(target)
	switch {
	case n != s.size:
		return span{}, fmt.Errorf("blocks of %d elements of the target, of %d here: %w", s.size, n, ErrRange)
	case from < 0 || to > local:
		return span{}, fmt.Errorf("blocks here from %d to %d: %w [0, %d)", from, to, ErrRange, local)
	case index < 0 || index > limit || s.from < -index || s.to > limit-index:
		return span{}, fmt.Errorf("blocks from %d to %d, from index %d: %w [0, %d)", s.from, s.to, index, ErrRange, limit)
	}
	s.from, s.to = s.from+index, s.to+index
	return s, nil
}

// put copies blocks to mapped memory.
func (v *view[T]) put(s *span, to *Blocks, src []T, from *Blocks) {
	there, here := v.cursors(s, to, from)
	blocks.Move(element.Bytes(v.mem), &there, element.Bytes(src), &here)
}

// get copies blocks from mapped memory.
func (v *view[T]) get(s *span, from *Blocks, dst []T, into *Blocks) {
	there, here := v.cursors(s, from, into)
	blocks.Move(element.Bytes(dst), &here, element.Bytes(v.mem), &there)
	atomics.AcquireRelease() // as in Get
}

// cursors counts the operation, and returns where the blocks begin at the target and in memory here.
func (v *view[T]) cursors(s *span, remote, local *Blocks) (there, here blocks.Cursor) {
	v.count(s.size)
	unit := element.Size[T]()
	return blocks.Start(&remote.layout, s.index*unit, unit), blocks.Start(&local.layout, 0, unit)
}

// lay returns the places of a call in bytes.
func (c *core) lay(s *span, remote, local *Blocks) *fabric.Blocks {
	b, _ := c.lays.Get().(*fabric.Blocks)
	if b == nil {
		b = new(fabric.Blocks)
	}
	unit := c.layout.size
	b.Set(&remote.layout, c.layout.offset(s.index), &local.layout, unit, s.size*unit)
	return b
}

// laid takes back what lay returned.
func (c *core) laid(b *fabric.Blocks) {
	b.Clear()
	c.lays.Put(b)
}

// putBlocks is a put of blocks by a call that found no view.
func (w *Window[T]) putBlocks(ctx context.Context, s *span, to *Blocks, src []T, from *Blocks, put fabric.Put) (fabric.Request, error) {
	r, v, err := w.reachView(ctx, s.target, s.from, s.to-s.from)
	switch {
	case err != nil:
		return fabric.Request{}, err
	case v != nil:
		v.put(s, to, src, from)
		if put.Tell == fabric.TellByFlag {
			err = r.PostFlag(ctx, put.Flag)
		}
		return fabric.Request{}, err
	case s.size == 0 && put.Tell == fabric.TellNothing:
		return fabric.Request{}, nil
	}
	if w.lent != nil {
		put.Flag.In = w.remotes[s.target].Load()
	}
	b := w.lay(s, to, from)
	put.Body.Mem, put.Blocks = element.Bytes(src), b
	inner, err := r.Start(ctx, &put)
	w.laid(b)
	return inner, err
}

// getBlocks is a get of blocks by a call that found no view.
func (w *Window[T]) getBlocks(ctx context.Context, s *span, from *Blocks, dst []T, into *Blocks) (fabric.Request, error) {
	r, v, err := w.reachView(ctx, s.target, s.from, s.to-s.from)
	switch {
	case err != nil || s.size == 0:
		return fabric.Request{}, err
	case v != nil:
		v.get(s, from, dst, into)
		return fabric.Request{}, nil
	}
	b := w.lay(s, from, into)
	inner, err := r.StartReadBlocks(ctx, element.Bytes(dst), b)
	w.laid(b)
	return inner, err
}
