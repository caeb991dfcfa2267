//go:build linux

package main

import (
	"context"
	"errors"
	"io"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/rpipe"
)

// A duplex is two pipes between rank 0 and the target, one each way.
type duplex struct {
	w     *rpipe.Writer[byte]
	r     *rpipe.Reader[byte]
	size  int    // of the blocks that this rank writes
	fill  []byte // content of a block; nil: each of its lines changes
	sum   byte
	first bool              // this is rank 0
	next  rpipe.Block[byte] // allocated ahead
	kept  rpipe.Block[byte] // read, and freed when the answer has left
	keeps bool
}

// duplex opens the pipes for blocks of request bytes from rank 0 and of reply
// bytes back. Other ranks have none. Kind: local.
func (h *harness) duplex(ctx context.Context, request, reply int, opts ...rpipe.Option) (*duplex, error) {
	d := &duplex{size: request, first: h.rank == 0}
	if h.rank > target {
		return d, nil
	}
	if h.rank == target {
		d.size = reply
	}
	peer := target - h.rank
	opts = append([]rpipe.Option{rpipe.WithHeap(pipeHeap(max(request, reply)))}, opts...)
	var err error
	if d.w, err = rpipe.OpenWriter[byte](ctx, h.world, peer, opts...); err != nil {
		return nil, err
	}
	d.r, err = rpipe.OpenReader[byte](ctx, h.world, peer, opts...)
	return d, err
}

// blocksAtOnce is the least number of blocks of one size for which a pipe has
// room.
const blocksAtOnce = 8

// pipeHeap returns the size of a pipe's heap for blocks of a size: the usual one
// if it has room for some of them.
func pipeHeap(size int) int {
	return min(max(rpipe.DefaultHeap, blocksAtOnce*stride(size)), rmalloc.MaxHeap)
}

// stride returns the bytes of a heap that a block of a size takes.
func stride(size int) int {
	return max(size+rmalloc.Granule-1, rmalloc.Granule) / rmalloc.Granule * rmalloc.Granule
}

// send writes a block with new data in all of its lines.
func (d *duplex) send(ctx context.Context, _ int) error { return write(ctx, d.w, d.size, d.fill) }

// write writes a block of size bytes: those of fill, or with nil new ones.
func write(ctx context.Context, w *rpipe.Writer[byte], size int, fill []byte) error {
	b, err := w.Alloc(ctx, size)
	if err != nil {
		return err
	}
	fillWith(b.Mem(), fill)
	return w.Write(ctx, b)
}

// fillWith fills a block with fill, or with nil touches each cache line of it.
func fillWith(mem, fill []byte) {
	if fill != nil {
		copy(mem, fill)
	} else {
		rewrite(mem)
	}
}

// receive reads a block and all of its lines, and frees it.
func (d *duplex) receive(ctx context.Context) (err error) {
	d.sum, err = use(ctx, d.r, d.sum)
	return err
}

// use reads and frees a block, and returns sum with its bytes added, so that no compiler drops the
// read.
func use(ctx context.Context, r *rpipe.Reader[byte], sum byte) (byte, error) {
	b, err := r.Read(ctx)
	if err != nil {
		return sum, err
	}
	return sum + read(b.Mem()), r.Free(b)
}

// ahead allocates the block that sendAhead writes next.
func (d *duplex) ahead(ctx context.Context) (err error) {
	if d.w != nil {
		d.next, err = d.w.Alloc(ctx, d.size)
	}
	return err
}

// sendAhead is send that keeps the books while the message travels: it frees the
// last block that it read, and allocates the next one.
func (d *duplex) sendAhead(ctx context.Context, _ int) error {
	fillWith(d.next.Mem(), d.fill)
	if err := d.w.Write(ctx, d.next); err != nil {
		return err
	}
	if d.keeps {
		d.keeps = false
		if err := d.r.Free(d.kept); err != nil {
			return err
		}
	}
	return d.ahead(ctx)
}

// keep is receive of a block that sendAhead frees.
func (d *duplex) keep(ctx context.Context) (err error) {
	if d.kept, err = d.r.Read(ctx); err == nil {
		d.sum += read(d.kept.Mem())
		d.keeps = true
	}
	return err
}

// close ends both pipes; rank 0's ends first. Kind: collective.
func (d *duplex) close(ctx context.Context) error {
	if d.w == nil {
		return nil
	}
	if d.first {
		return errors.Join(d.w.Close(ctx), drain(ctx, d.r))
	}
	return errors.Join(drain(ctx, d.r), d.w.Close(ctx))
}

// drain closes a pipe after its writer.
func drain[T any](ctx context.Context, r *rpipe.Reader[T]) error {
	_, err := r.Read(ctx)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, r.Close(ctx))
}
