package window_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// The last rank dies with a lease on memory of rank 0, which goes on attaching and detaching.
// The memory of the lease stays. Memory of the dead rank ends the waits of its users.
func TestAttachmentsAfterTheDeathOfARank(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			victim := r.N - 1
			w := allocate[int64](ctx, r, 0, window.WithAttachments(2))
			heads := allocate[window.Pointer[int64]](ctx, r, 2)
			p, _, err := w.Attach(ctx, 10)
			r.NoError(err)
			switch r.Me {
			case 0:
				r.NoError(heads.PutValue(ctx, victim, 0, p))
			case victim:
				r.NoError(heads.PutValue(ctx, 0, 1, p))
			}
			r.NoError(heads.Fence(ctx))
			if r.Me == victim {
				_, err := w.Open(ctx, heads.Local()[0])
				r.NoError(err)
				r.NoError(r.World.Barrier(ctx))
				r.Die()
			}
			err = r.World.Barrier(ctx) // behind it the victim dies
			if err == nil {
				err = r.World.Barrier(ctx)
			}
			r.ErrorIs(err, runtime.ErrRankDead)
			if r.Me != 0 {
				return
			}
			kept := used(r.World)
			r.NoError(w.Detach(ctx, p))
			for range 3 {
				again, _, err := w.Attach(ctx, 10)
				r.NoError(err)
				r.NoError(w.Detach(ctx, again))
			}
			r.Equal(kept, used(r.World), "the memory of the lease, and no other, stays")
			err = repeat(ctx, func() error {
				a, err := w.Open(ctx, heads.Local()[1])
				if err != nil {
					return err
				}
				return a.Close(ctx)
			})
			r.ErrorIs(err, runtime.ErrRankDead)
		})
		require.ErrorContains(t, err, "ended without returning")
	})
}
