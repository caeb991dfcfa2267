package rpipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
)

// TestUnusedEndpointsCloseTogether closes both ends of unused pipes at about
// the same time: each finds the other one closed, and the last word is said once.
func TestUnusedEndpointsCloseTogether(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for range 100 {
				w, err := rpipe.OpenWriter[int](ctx, r.World, 1-r.Me, rpipe.WithHeap(64<<10))
				r.NoError(err)
				rd, err := rpipe.OpenReader[int](ctx, r.World, 1-r.Me, rpipe.WithHeap(64<<10))
				r.NoError(err)
				closed := make(chan error, 1)
				go func() { closed <- rd.Close(ctx) }()
				if err := w.Close(ctx); err != nil {
					r.ErrorIs(err, rpipe.ErrClosed)
				}
				r.NoError(<-closed)
			}
			r.NoError(r.World.Barrier(ctx))
			w, err := rpipe.OpenWriter[int](ctx, r.World, 1-r.Me, rpipe.WithName("after"))
			r.NoError(err)
			rd, err := rpipe.OpenReader[int](ctx, r.World, 1-r.Me, rpipe.WithName("after"))
			r.NoError(err)
			r.NoError(w.Send(ctx, []int{1}))
			_, err = rd.Recv(ctx, make([]int, 1))
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
		})
	})
}
