package fabric

import (
	"context"
	"slices"

	"github.com/gopgas/gopgas/internal/blocks"
)

// Blocks are the places of a transfer's bytes in the Remote's memory, and here. A transfer
// uses them up before its start returns.
type Blocks struct {
	remoteLayout, localLayout blocks.Layout
	remote, local             blocks.Cursor
	size                      int // bytes
	sieve                     []byte
}

// Set makes b the places of size bytes. The layouts count units of unit bytes. Place 0 of
// remote is at byte at, and place 0 of local at the beginning of the caller's memory.
func (b *Blocks) Set(remote *blocks.Layout, at int, local *blocks.Layout, unit, size int) {
	b.remoteLayout, b.localLayout, b.size = *remote, *local, size
	b.remote, b.local = blocks.Start(&b.remoteLayout, at, unit), blocks.Start(&b.localLayout, 0, unit)
}

// Clear has b hold none of the caller's memory.
func (b *Blocks) Clear() { *b = Blocks{sieve: b.sieve} }

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

// These bound what one read fetches of blocks that do not follow one another.
const (
	sieveGap  = 1 << 10   // bytes between two blocks
	sieveMost = 256 << 10 // bytes of a read
)

// readEach reads all blocks and waits for them. Blocks near each other take one read; all others
// take one each.
func (r *Remote) readEach(ctx context.Context, dst []byte, b *Blocks) (err error) {
	var all flight
	for err == nil {
		from, to, ok := blocks.Pair(&b.remote, &b.local)
		if !ok {
			break
		}
		if gap := from.Stride - from.Block; from.Count > 1 && gap >= 0 && gap <= sieveGap && from.Stride <= sieveMost/2 {
			err = r.readSieved(ctx, from, dst, to, b)
			continue
		}
		for i := 0; i < to.Count && err == nil; i++ {
			at := to.At + i*to.Stride
			err = all.read(ctx, r, from.At+i*from.Stride, dst[at:at+to.Block])
		}
	}
	return all.land(ctx, err)
}

// readSieved reads blocks together with the bytes between them, which it drops. ROMIO calls that
// data sieving (Thakur, Gropp and Lusk, 1999).
func (r *Remote) readSieved(ctx context.Context, from blocks.Run, dst []byte, to blocks.Run, b *Blocks) error {
	each := 1 + (sieveMost-from.Block)/from.Stride
	b.sieve = slices.Grow(b.sieve[:0], (min(each, from.Count)-1)*from.Stride+from.Block)
	for left := from.Count; left > 0; left -= each {
		n := min(each, left)
		got := b.sieve[:(n-1)*from.Stride+from.Block]
		if err := r.Read(ctx, from.At, got); err != nil {
			return err
		}
		to.Count = n
		blocks.Copy(dst, to, got, blocks.Run{Block: from.Block, Count: n, Stride: from.Stride})
		from.At, to.At = from.At+n*from.Stride, to.At+n*to.Stride
	}
	return nil
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
