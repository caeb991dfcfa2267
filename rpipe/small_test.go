package rpipe_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/gopgas/gopgas/internal/rmalloc"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// sizesAround are lengths of blocks whose bytes travel in an entry, and of some that are
// just too long.
func sizesAround(i int) int { return i * 7 % (rmalloc.MostInline + 12) }

// The reader holds all blocks while the ring of notifications goes round many times.
func TestHeldSmallBlocksKeepTheirBytes(t *testing.T) {
	const blocks = 60
	eachMatrix(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		opts = append(opts, rpipe.WithWidth(4), rpipe.WithHeap(blocks*2*rmalloc.Granule), rpipe.WithBlocks(blocks))
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
			for i := range 2 * blocks {
				b, err := w.Alloc(ctx, sizesAround(i))
				r.NoError(err)
				for j := range b.Mem() {
					b.Mem()[j] = byte(i + j)
				}
				r.NoError(w.Write(ctx, b))
			}
		}, func(rd *rpipe.Reader[byte]) {
			for lap := range 2 {
				var held []rpipe.Block[byte]
				for range blocks {
					b, err := rd.Read(ctx)
					r.NoError(err)
					held = append(held, b)
				}
				for _, k := range rand.New(rand.NewPCG(1, uint64(lap))).Perm(blocks) {
					i := lap*blocks + k
					r.Equal(sizesAround(i), held[k].Len())
					for j, v := range held[k].Mem() {
						if v != byte(i+j) {
							r.Equal(byte(i+j), v, "byte %d of block %d", j, i)
						}
					}
					r.NoError(rd.Free(held[k]))
					r.ErrorIs(rd.Free(held[k]), rpipe.ErrStale)
				}
			}
		}, opts...)
	})
}

// Blocks leave in the order of the Writes, whichever order the Allocs had, and a part of
// them as WriteFirst says.
func TestSmallBlocksAreWrittenInAnyOrder(t *testing.T) {
	eachMatrix(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
			var blocks []rpipe.Block[byte]
			for i := range 70 {
				b, err := w.Alloc(ctx, 20)
				r.NoError(err)
				for j := range b.Mem() {
					b.Mem()[j] = byte(i)
				}
				blocks = append(blocks, b)
			}
			for i := len(blocks) - 1; i >= 0; i-- {
				if i%3 == 0 {
					r.NoError(w.Free(blocks[i]))
				} else {
					r.NoError(w.WriteFirst(ctx, blocks[i], i%20))
				}
			}
		}, func(rd *rpipe.Reader[byte]) {
			for i := 69; i >= 0; i-- {
				if i%3 == 0 {
					continue
				}
				b, err := rd.Read(ctx)
				r.NoError(err)
				r.Equal(i%20, b.Len())
				for _, v := range b.Mem() {
					r.Equal(byte(i), v)
				}
				r.NoError(rd.Free(b))
			}
		}, append(opts, rpipe.WithBlocks(70))...)
	})
}

// Free takes no lock for most of these blocks. The writer gets all memory back.
func TestManyGoroutinesFreeBlocks(t *testing.T) {
	blocks := pipetest.Fewer(300)
	eachMatrix(t, func(ctx context.Context, r *testjob.Rank, opts []rpipe.Option) {
		opts = append(opts, rpipe.WithHeap(256*rmalloc.Granule), rpipe.WithWidth(16))
		pipetest.Ends(ctx, r, func(w *rpipe.Writer[int]) {
			for i := range blocks {
				r.NoError(w.Send(ctx, []int{i, -i}))
			}
		}, func(rd *rpipe.Reader[int]) {
			done := make(chan rpipe.Block[int], 40)
			var freeing sync.WaitGroup
			for range 3 {
				freeing.Go(func() {
					for b := range done {
						if err := rd.Free(b); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for i := range blocks {
				b, err := rd.Read(ctx)
				r.NoError(err)
				r.Equal([]int{i, -i}, b.Mem())
				done <- b
			}
			close(done)
			freeing.Wait()
			r.Zero(rd.Stats().Held)
		}, opts...)
	})
}
