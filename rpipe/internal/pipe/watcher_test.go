package pipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipe"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
)

// TestCloseOfAReaderWaitsForAWatcherThatLooksForTheWriter has the watcher look as Close begins, after the
// writer's rank has left.
func TestCloseOfAReaderWaitsForAWatcherThatLooksForTheWriter(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		if r.Me == 1 {
			return
		}
		for range 20 {
			rd, err := rpipe.OpenReader[int](ctx, r.World, 1)
			r.NoError(err)
			pipe.WatchAtClose(pipetest.ReaderEnd(rd))
			r.NoError(rd.Close(ctx))
		}
	})
}
