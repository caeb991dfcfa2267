package rpipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
)

// TestWriterReturnsErrRankDeadAtOnce: where the reader is pipetest.Mapped, stores into its
// memory would go on without an error.
func TestWriterReturnsErrRankDeadAtOnce(t *testing.T) {
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
