package fan_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/fan"
)

// TestReadConnectsNoClosedPipe closes a fan-in's pipe ahead of the fan-in, as Close does while
// a read is under way. The registry alone connects a closed end.
func TestReadConnectsNoClosedPipe(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				r.NoError(r.World.Barrier(ctx)) // the reader has closed
				w, err := rpipe.OpenWriter[byte](ctx, r.World, 1)
				r.NoError(err)
				r.NoError(r.World.Barrier(ctx))
				r.NoError(r.World.Barrier(ctx)) // the reader has read
				r.NoError(w.Close(ctx))
				return
			}
			in, err := fan.OpenIn[byte](ctx, r.World, []int{0})
			r.NoError(err)
			end := in.Ends()[0]
			r.NoError(end.Close(ctx))
			r.NoError(r.World.Barrier(ctx))
			r.NoError(r.World.Barrier(ctx)) // the writer is there
			_, _, err = in.TryRead()
			r.Equal(rpipe.ErrWouldBlock, err)
			r.False(end.Joined.Load())
			r.NoError(r.World.Barrier(ctx))
			r.NoError(in.Close(ctx))
		})
	})
}
