package collectives_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// TestMismatchErrorNamesLongCallsThatDiffer has one member wait in a call of a long message. The
// second member has made more calls than the team remembers. A header in the channel names
// the difference.
func TestMismatchErrorNamesLongCallsThatDiffer(t *testing.T) {
	t.Parallel() // it waits most of its time
	const long, many = 1 << 20, 100
	broadcast := func(ctx context.Context, r *testjob.Rank, root, bytes, times int) (err error) {
		for i := 0; i < times && err == nil; i++ {
			err = collectives.Broadcast(ctx, r.World, root, make([]byte, bytes))
		}
		return err
	}
	for name, calls := range map[string][2]func(ctx context.Context, r *testjob.Rank) error{
		"the receiver waits": {
			func(ctx context.Context, r *testjob.Rank) error { return broadcast(ctx, r, 0, 8, many) },
			func(ctx context.Context, r *testjob.Rank) error { return broadcast(ctx, r, 0, long, 1) },
		},
		"the sender waits": {
			func(ctx context.Context, r *testjob.Rank) error { return broadcast(ctx, r, 0, long, 1) },
			func(ctx context.Context, r *testjob.Rank) error { return broadcast(ctx, r, 1, 8, many) },
		},
		"both wait": {
			func(ctx context.Context, r *testjob.Rank) error { return broadcast(ctx, r, 0, long, 1) },
			func(ctx context.Context, r *testjob.Rank) error {
				if err := broadcast(ctx, r, 1, 8, many); err != nil {
					return err
				}
				return broadcast(ctx, r, 0, 8, 1)
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testjob.Config{Provider: "tcp", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
				err := calls[r.Me](ctx, r)
				if err == nil {
					err = r.World.Barrier(ctx)
				}
				r.ErrorIs(err, runtime.ErrMismatch)
			})
		})
	}
}
