package collectives_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
)

// TestFirstCallMeetsNoMember has the root return from the first broadcast of a team before any other member begins it.
// In mapped memory the call allocates nothing. Over tcp the devices of the others make the memory of the message.
func TestFirstCallMeetsNoMember(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		returned := make(chan struct{})
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			half, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			inner := team.Of(half)
			if !inner.Mapped && inner.Extents == nil {
				return
			}
			before, x := inner.Arena().Used(), []int{r.Me}
			if r.Me == 0 {
				r.NoError(collectives.Broadcast(ctx, half, 0, x))
				close(returned)
			} else {
				<-returned
				r.NoError(collectives.Broadcast(ctx, half, 0, x))
			}
			r.Zero(x[0])
			if inner.Mapped {
				r.Equal(before, inner.Arena().Used())
			}
			r.NoError(half.Free(ctx))
		})
	})
}
