package collectives_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A teamCall is a collective call on vectors of n elements.
type teamCall func(ctx context.Context, t *runtime.Team, n int) error

func gatherTo0(ctx context.Context, t *runtime.Team, n int) error {
	return collectives.Gather(ctx, t, 0, make([]int32, n), make([]int32, n*t.Size()))
}

func scanned(ctx context.Context, t *runtime.Team, n int) error {
	x := make([]int32, n)
	return collectives.Scan(ctx, t, collectives.Sum[int32](), x, x)
}

func castFrom(root int) teamCall {
	return func(ctx context.Context, t *runtime.Team, n int) error {
		return collectives.Broadcast(ctx, t, root, make([]int32, n))
	}
}

// TestNextBarrierReturnsErrMismatchForEarlierCalls has a root make another call than the members.
// No member waits for the root, which sends and goes on.
func TestNextBarrierReturnsErrMismatchForEarlierCalls(t *testing.T) {
	pairs := [][2]teamCall{{castFrom(0), castFrom(2)}, {scanned, gatherTo0}, {castFrom(1), gatherTo0}}
	syncs := []func(ctx context.Context, t *runtime.Team, w *window.Window[int]) error{
		func(ctx context.Context, t *runtime.Team, _ *window.Window[int]) error { return t.Barrier(ctx) },
		func(ctx context.Context, _ *runtime.Team, w *window.Window[int]) error { return w.Fence(ctx) },
		func(ctx context.Context, t *runtime.Team, _ *window.Window[int]) error {
			_, err := t.Split(ctx, 0, 0)
			return err
		},
	}
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			for _, calls := range pairs {
				for _, n := range []int{3, 1 << 13} {
					for _, sync := range syncs {
						alone(ctx, r, calls, n, sync)
					}
				}
			}
		})
	})
}

// alone has the last member make another call than the others, in a team of its own.
func alone(ctx context.Context, r *testjob.Rank, calls [2]teamCall, n int,
	sync func(context.Context, *runtime.Team, *window.Window[int]) error) {
	team, err := r.World.Split(ctx, 0, 0)
	r.NoError(err)
	w, err := window.Allocate[int](ctx, team, 1)
	r.NoError(err)
	r.NoError(r.World.Barrier(ctx)) // a member may learn that the team broke before its call ends
	last := calls[0]
	if r.Me == r.N-1 {
		last = calls[1]
	}
	// Earlier calls open the channels that the last call needs. Members that are behind may
	// learn of the outcome in them.
	for _, call := range []teamCall{calls[0], calls[1], last} {
		if err == nil {
			err = call(ctx, team, n)
		}
	}
	if err == nil {
		err = sync(ctx, team, w)
	}
	r.ErrorIs(err, runtime.ErrMismatch)
	var m *runtime.MismatchError
	r.ErrorAs(err, &m)
	r.NotEqual(m.Call, m.OtherDid)
	r.NotContains(err.Error(), "something else")
}
