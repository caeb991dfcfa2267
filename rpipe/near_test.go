package rpipe_test

import (
	"context"
	"io"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// TestAWriterLearnsOfADeadReaderAtOnce: where the reader is mapped, stores into its
// memory would go on without an error.
func TestAWriterLearnsOfADeadReaderAtOnce(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		_ = c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 1 {
				rd, err := rpipe.OpenReader[byte](ctx, r.World, 0)
				r.NoError(err)
				_, err = rd.Recv(ctx, nil)
				r.NoError(err)
				r.Die()
			}
			w, err := rpipe.OpenWriter[byte](ctx, r.World, 1)
			r.NoError(err)
			b, err := w.Alloc(ctx, 1)
			r.NoError(err)
			r.NoError(w.Send(ctx, []byte{1}))
			for team := team.Of(r.World); team.Fate(1) == nil; team.Progress() {
				r.NoError(ctx.Err())
			}
			r.ErrorIs(w.Write(ctx, b), runtime.ErrRankDead)
			r.ErrorIs(w.Send(ctx, []byte{2}), runtime.ErrRankDead)
		})
	})
}

// TestAReaderThatIsBusyHoldsUpNoOther: one reminder looks after all readers of a rank.
func TestAReaderThatIsBusyHoldsUpNoOther(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			const heap = 4096
			if r.Me == 0 {
				busy, err := rpipe.OpenWriter[byte](ctx, r.World, 1, rpipe.WithName("busy"), rpipe.WithHeap(heap))
				r.NoError(err)
				other, err := rpipe.OpenWriter[byte](ctx, r.World, 1, rpipe.WithName("other"), rpipe.WithHeap(heap))
				r.NoError(err)
				r.NoError(busy.Send(ctx, make([]byte, 64)))
				r.NoError(other.Send(ctx, make([]byte, 64)))
				r.NoError(r.World.Barrier(ctx))
				all, err := other.Alloc(ctx, heap) // all that was freed, of which nobody has told
				r.NoError(err)
				r.NoError(other.Free(all))
				r.NoError(r.World.Barrier(ctx))
				r.NoError(busy.Close(ctx))
				r.NoError(other.Close(ctx))
				return
			}
			busy, err := rpipe.OpenReader[byte](ctx, r.World, 0, rpipe.WithName("busy"), rpipe.WithHeap(heap))
			r.NoError(err)
			other, err := rpipe.OpenReader[byte](ctx, r.World, 0, rpipe.WithName("other"), rpipe.WithHeap(heap))
			r.NoError(err)
			for _, rd := range []*rpipe.Reader[byte]{busy, other} {
				_, err = rd.Recv(ctx, nil)
				r.NoError(err)
			}
			over := rpipe.Busy(busy)
			r.NoError(r.World.Barrier(ctx))
			r.NoError(r.World.Barrier(ctx))
			over()
			for _, rd := range []*rpipe.Reader[byte]{busy, other} {
				_, err = rd.Recv(ctx, nil)
				r.ErrorIs(err, io.EOF)
			}
		})
	})
}
