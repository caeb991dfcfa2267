package fabric

import (
	"context"
	"slices"

	"github.com/gopgas/gopgas/internal/blocks"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Blocks are the places of a transfer's bytes in the Remote's memory, and here. A transfer
// uses them up before its start returns.
type Blocks struct {
	remoteLayout, localLayout blocks.Layout
	remote, local             blocks.Cursor
	size                      int // bytes

	there, here []blocks.Run // of one request
	packed      []byte       // its bytes
}

// Set makes b the places of size bytes. The layouts count units of unit bytes. Place 0 of
// remote is at byte at, and place 0 of local at the beginning of the caller's memory.
func (b *Blocks) Set(remote *blocks.Layout, at int, local *blocks.Layout, unit, size int) {
	b.remoteLayout, b.localLayout, b.size = *remote, *local, size
	b.remote, b.local = blocks.Start(&b.remoteLayout, at, unit), blocks.Start(&b.localLayout, 0, unit)
}

// Clear has b hold none of the caller's memory.
func (b *Blocks) Clear() { *b = Blocks{there: b.there[:0], here: b.here[:0], packed: b.packed} }

// longBlock is the length of blocks that travel by requests of their own. A copy to other
// blocks of the same request would cost more.
const longBlock = 4 << 10

// batchMost is the size of the largest batch of a write. tcp copies as much at a post.
const batchMost = 16 << 10

// batch takes runs of short blocks for one request, of at most most bytes with
// driver.RunSize for each run. It returns their bytes. Without short blocks in front, size is 0, and
// batch returns runs of long blocks. At the end these have no block. If most is 0, all blocks are long.
func (b *Blocks) batch(most int) (size int, there, here blocks.Run) {
	b.there, b.here = b.there[:0], b.here[:0]
	for {
		n, left := blocks.Next(&b.remote, &b.local), most-size-(len(b.there)+1)*driver.RunSize
		if most == 0 || n >= longBlock || n == 0 {
			if size == 0 {
				there, here, _ = blocks.Pair(&b.remote, &b.local)
			}
			return size, there, here
		}
		if n > left {
			return size, there, here
		}
		to, from, _ := blocks.PairWithin(&b.remote, &b.local, left)
		b.there, b.here = blocks.Join(b.there, to), blocks.Join(b.here, from)
		size += to.Block * to.Count
	}
}

// single reports whether the batch is one block on both sides.
func (b *Blocks) single() bool {
	return len(b.there)+len(b.here) == 2 && b.there[0].Count+b.here[0].Count == 2
}

// blocksMost returns the size of the largest batch that a request of b takes, 0 if the device takes
// no blocks. A post copies the bytes of a write.
func (b *binding) blocksMost(write bool) int {
	switch {
	case !b.info.Blocks || b.info.Memory.LocalKeys:
		return 0
	case !write:
		return driver.MaxBlocks
	case b.inlineMax() < batchMost:
		return 0
	}
	return batchMost
}

// blocks adds the requests of blocks of mem: one for many short blocks, if the device takes
// blocks, and one for each long block.
func (w *posting) blocks(ctx context.Context, path Path, mem []byte, b *Blocks) error {
	most := w.Peer.bind.blocksMost(true)
	for {
		size, to, from := b.batch(most)
		switch {
		case size == 0 && to.Count == 0:
			return nil
		case size > 0 && b.single():
			size, to, from = 0, b.there[0], b.here[0] // a plain write
		}
		if size > 0 {
			if err := w.packed(ctx, mem, b, size); err != nil {
				return err
			}
			if blocks.Next(&b.remote, &b.local) == 0 {
				return nil
			}
			if err := w.flush(ctx); err != nil { // the next batch takes the same memory
				return err
			}
		}
		for i := range to.Count {
			at := from.At + i*from.Stride
			if err := w.part(ctx, path, to.At+i*to.Stride, mem[at:at+to.Block]); err != nil {
				return err
			}
		}
	}
}

// packed adds the request of a batch of size bytes, which the post copies.
func (w *posting) packed(ctx context.Context, mem []byte, b *Blocks, size int) error {
	if err := w.room(ctx, 1, false); err != nil {
		return err
	}
	b.packed = slices.Grow(b.packed[:0], size)[:size]
	blocks.Pack(b.packed, mem, 0, b.here)
	w.Peer.Stats.staged.Add(uint64(size))
	o, i := w.o, w.n
	w.n++
	o.seg[i] = driver.Segment{Mem: b.packed}
	o.wr[i] = driver.WorkRequest{Op: driver.OpWriteBlocks, Flags: driver.Inline, Local: o.seg[i : i+1], Remote: w.base, Runs: b.there}
	return nil
}

// StartReadBlocks starts a read of blocks to blocks of dst, which belong to the operation
// until Request.Wait. It waits for all requests but the last.
func (r *Remote) StartReadBlocks(ctx context.Context, dst []byte, b *Blocks) (last Request, err error) {
	if r.bounce != nil {
		return Request{}, r.readBlocksBounced(ctx, dst, b)
	}
	var before flight
	most := r.Peer.bind.blocksMost(false)
	for err == nil {
		size, from, to := b.batch(most)
		if size == 0 && from.Count == 0 {
			break
		}
		started := last
		last = Request{}
		if err = before.enter(ctx, started); err != nil {
			break
		}
		if size > 0 {
			last, err = r.startBatch(ctx, dst, b, size)
		} else {
			err = r.readLong(ctx, from, dst, to, b, &before)
		}
	}
	if err = before.land(ctx, err); err != nil {
		_ = last.Wait(ctx) // the first error counts
		return Request{}, err
	}
	return last, nil
}

// startBatch starts the read of a batch of size bytes. They arrive in dst, or if its blocks do
// not follow each other, beside it.
func (r *Remote) startBatch(ctx context.Context, dst []byte, b *Blocks, size int) (Request, error) {
	o, err := r.newOp(ctx)
	if err != nil {
		return Request{}, err
	}
	if one := b.here[0]; len(b.here) == 1 && (one.Count == 1 || one.Stride == one.Block) {
		o.unfit = o.lend(0, dst[one.At:one.At+size], true, false)
	} else {
		o.fillBlocks(0, dst, b.here, size)
	}
	o.wr[0] = driver.WorkRequest{ID: o.id, Op: driver.OpReadBlocks, Flags: driver.Signaled, Local: o.seg[:1], Remote: r.addr, Runs: b.there}
	r.Peer.Stats.count(size)
	return o.start(ctx, 1)
}

// These bound the bytes that one read fetches of blocks that do not follow one another.
const (
	sieveGap  = 1 << 10   // bytes between two blocks
	sieveMost = 256 << 10 // bytes of a read
)

// readLong reads blocks without a batch. Blocks near each other take one read; all others take one
// each, of f.
func (r *Remote) readLong(ctx context.Context, from blocks.Run, dst []byte, to blocks.Run, b *Blocks, f *flight) error {
	if gap := from.Stride - from.Block; from.Count > 1 && gap >= 0 && gap <= sieveGap && from.Stride <= sieveMost/2 {
		return r.readSieved(ctx, from, dst, to, b)
	}
	for i := range to.Count {
		at := to.At + i*to.Stride
		if err := f.read(ctx, r, from.At+i*from.Stride, dst[at:at+to.Block]); err != nil {
			return err
		}
	}
	return nil
}

// readSieved reads blocks together with the bytes between them, which it drops. ROMIO calls that
// data sieving (Thakur, Gropp and Lusk, 1999).
func (r *Remote) readSieved(ctx context.Context, from blocks.Run, dst []byte, to blocks.Run, b *Blocks) error {
	each := 1 + (sieveMost-from.Block)/from.Stride
	b.packed = slices.Grow(b.packed[:0], (min(each, from.Count)-1)*from.Stride+from.Block)
	for left := from.Count; left > 0; left -= each {
		n := min(each, left)
		got := b.packed[:(n-1)*from.Stride+from.Block]
		if err := r.Read(ctx, from.At, got); err != nil {
			return err
		}
		to.Count = n
		blocks.Copy(dst, to, got, blocks.Run{Block: from.Block, Count: n, Stride: from.Stride})
		from.At, to.At = from.At+n*from.Stride, to.At+n*to.Stride
	}
	return nil
}

// enter adds a request that was started before.
func (f *flight) enter(ctx context.Context, started Request) error {
	if started.o == nil {
		return nil
	}
	place, err := f.next(ctx)
	*place = started
	return err
}

// read starts a read of f.
func (f *flight) read(ctx context.Context, r *Remote, offset int, dst []byte) error {
	for len(dst) > 0 {
		n := min(len(dst), r.MaxMessage())
		started, err := r.StartRead(ctx, offset, dst[:n])
		if err == nil {
			err = f.enter(ctx, started)
		}
		if err != nil {
			return err
		}
		offset, dst = offset+n, dst[n:]
	}
	return nil
}
