package active_test

import (
	"context"
	"errors"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe/active"
)

// TestCallNamesItselfWhereAnotherCallEndedItsContext ends a context with the RemoteError of a
// call, as an errgroup does. The error of a second call names the second call, and wraps the
// first one's.
func TestCallNamesItselfWhereAnotherCallEndedItsContext(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		release := make(chan struct{})
		a, err := active.Open(ctx, r.World, active.Handlers{
			"fails": func(context.Context, int, []byte) ([]byte, error) { return nil, errors.New("not today") },
			"waits": func(context.Context, int, []byte) ([]byte, error) { <-release; return nil, nil },
		})
		r.NoError(err)
		if r.Me == 0 {
			_, first := a.Call(ctx, 1, "fails", nil)
			var remote *active.RemoteError
			r.ErrorAs(first, &remote)
			ended, end := context.WithCancelCause(ctx)
			end(first)
			_, err := a.Call(ended, 1, "waits", nil)
			r.ErrorIs(err, first)
			r.ErrorContains(err, `call of "waits" at rank 1 by rank 0`)
		}
		r.NoError(r.World.Barrier(ctx))
		close(release)
		r.NoError(a.Close(ctx))
	})
}
