package rpipe_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// TestWriteFirstHandsOverTheFirstElements writes none, some and all elements of blocks. The
// reader gets these alone, and the writer then allocates the whole heap.
func TestWriteFirstHandsOverTheFirstElements(t *testing.T) {
	const most, heap = 40, 1 << 10 // elements of a block, bytes
	counts := [...]int{0, 1, 7, 8, 9, most - 1, most}
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		const rounds = 5
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[int64]) {
			for round := range rounds {
				for k, n := range counts {
					b, err := w.Alloc(ctx, most)
					r.NoError(err)
					for i := range b.Mem() {
						b.Mem()[i] = int64(round<<16 + k<<8 + i)
					}
					r.ErrorIs(w.WriteFirst(ctx, b, -1), runtime.ErrRange)
					r.ErrorIs(w.TryWriteFirst(b, most+1), runtime.ErrRange)
					if round%2 == 0 {
						r.NoError(w.WriteFirst(ctx, b, n))
					} else {
						tried(ctx, r, func() error { return w.TryWriteFirst(b, n) })
					}
					r.ErrorIs(w.WriteFirst(ctx, b, n), rpipe.ErrStale)
				}
			}
			b, err := w.Alloc(ctx, heap/8)
			r.NoError(err)
			r.NoError(w.Free(b))
			r.NoError(r.World.Barrier(ctx))
		}, func(rd *rpipe.Reader[int64]) {
			for round := range rounds {
				for k, n := range counts {
					b, err := rd.Read(ctx)
					r.NoError(err)
					r.Len(b.Mem(), n)
					for i, v := range b.Mem() {
						r.EqualValues(round<<16+k<<8+i, v)
					}
					r.NoError(rd.Free(b))
				}
			}
			r.NoError(r.World.Barrier(ctx)) // the writer allocates as long as the reader is open
		}, append(opts, rpipe.WithHeap(heap))...)
	})
}

// TestWriteFirstThatFailsLeavesTheBlockWhole has the flag find no room in the queue. The
// writer then writes all of the block.
func TestWriteFirstThatFailsLeavesTheBlockWhole(t *testing.T) {
	const n = 40
	eachMode(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[int64]) {
			b, err := w.Alloc(ctx, n)
			r.NoError(err)
			var full atomic.Bool
			pipetest.ClogWriter(pipetest.WriterEnd(w), &full)
			full.Store(true)
			r.Equal(rpipe.ErrWouldBlock, w.TryWriteFirst(b, 0))
			r.ErrorIs(w.WriteFirst(pipetest.Ended(ctx), b, 0), context.Canceled)
			full.Store(false)
			for i := range b.Mem() {
				b.Mem()[i] = int64(i)
			}
			r.NoError(w.Write(ctx, b))
		}, func(rd *rpipe.Reader[int64]) {
			b, err := rd.Read(ctx)
			r.NoError(err)
			r.Len(b.Mem(), n)
			for i, v := range b.Mem() {
				r.EqualValues(i, v)
			}
			r.NoError(rd.Free(b))
		}, opts...)
	})
}
