package rpipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// The reader frees more blocks before the writer looks than one read of the ring shows.
// The reader has no reason to announce them again.
func TestAllocSeesAllEarlierFrees(t *testing.T) {
	const blocks = 256
	const heap = blocks * 64
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			pipetest.Ends(ctx, r, func(w *rpipe.Writer[byte]) {
				for range blocks {
					r.NoError(w.Send(ctx, []byte{1}))
				}
				r.NoError(r.World.Barrier(ctx))
				b, err := w.Alloc(ctx, heap)
				r.NoError(err)
				r.NoError(w.Free(b))
				r.EqualValues(blocks, w.Stats().Tags)
				r.NoError(r.World.Barrier(ctx))
			}, func(rd *rpipe.Reader[byte]) {
				for range blocks {
					_, err := rd.Recv(ctx, nil)
					r.NoError(err)
				}
				r.NoError(rd.Sync(ctx), "nothing is owed from here on")
				r.NoError(r.World.Barrier(ctx))
				r.NoError(r.World.Barrier(ctx))
			}, rpipe.WithSync(rpipe.Immediate), rpipe.WithHeap(heap), rpipe.WithWidth(blocks), rpipe.WithBlocks(blocks))
		})
	})
}
