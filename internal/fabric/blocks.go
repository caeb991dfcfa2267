package fabric

import (
	"context"

	"github.com/gopgas/gopgas/internal/blocks"
)

// Blocks are the places of a transfer's bytes in the Remote's memory, and here. A transfer
// uses them up before its start returns.
type Blocks struct {
	remoteLayout, localLayout blocks.Layout
	remote, local             blocks.Cursor
	size                      int // bytes
}

// Set makes b the places of size bytes. The layouts count units of unit bytes. Place 0 of
// remote is at byte at, and place 0 of local at the beginning of the caller's memory.
func (b *Blocks) Set(remote *blocks.Layout, at int, local *blocks.Layout, unit, size int) {
	b.remoteLayout, b.localLayout, b.size = *remote, *local, size
	b.remote, b.local = blocks.Start(&b.remoteLayout, at, unit), blocks.Start(&b.localLayout, 0, unit)
}

// Clear has b hold none of the caller's memory.
func (b *Blocks) Clear() { *b = Blocks{} }

// blocks adds the requests of blocks of mem: a request for each pair of blocks.
func (w *posting) blocks(ctx context.Context, path Path, mem []byte, b *Blocks) error {
	for {
		to, from, ok := blocks.Pair(&b.remote, &b.local)
		if !ok {
			return nil
		}
		for i := range to.Count {
			at := from.At + i*from.Stride
			if err := w.part(ctx, path, to.At+i*to.Stride, mem[at:at+to.Block]); err != nil {
				return err
			}
		}
	}
}

// StartReadBlocks starts a read of blocks to blocks of dst, which belong to the operation
// until Request.Wait.
func (r *Remote) StartReadBlocks(ctx context.Context, dst []byte, b *Blocks) (Request, error) {
	return Request{}, r.readEach(ctx, dst, b)
}

// readEach reads by a request for each pair of blocks, and waits for all of them.
func (r *Remote) readEach(ctx context.Context, dst []byte, b *Blocks) (err error) {
	var all flight
	for err == nil {
		from, to, ok := blocks.Pair(&b.remote, &b.local)
		if !ok {
			break
		}
		for i := 0; i < to.Count && err == nil; i++ {
			at := to.At + i*to.Stride
			err = all.read(ctx, r, from.At+i*from.Stride, dst[at:at+to.Block])
		}
	}
	return all.land(ctx, err)
}

// read starts a read of f.
func (f *flight) read(ctx context.Context, r *Remote, offset int, dst []byte) error {
	for len(dst) > 0 {
		n := min(len(dst), r.MaxMessage())
		place, err := f.next(ctx)
		if err == nil {
			*place, err = r.StartRead(ctx, offset, dst[:n])
		}
		if err != nil {
			return err
		}
		offset, dst = offset+n, dst[n:]
	}
	return nil
}
