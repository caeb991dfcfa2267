package team_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
)

// TestAwaitMappedFindsAWordThatWasStoredWithoutARing stores the word while the goroutine that waits
// for it sleeps.
func TestAwaitMappedFindsAWordThatWasStoredWithoutARing(t *testing.T) {
	testjob.EachTransport(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			inner, word, stored := team.Of(r.World), new(atomic.Uint64), make(chan struct{})
			before := inner.Bell().Parks()
			go func() {
				defer close(stored)
				for inner.Bell().Parks() == before && ctx.Err() == nil {
					time.Sleep(time.Millisecond)
				}
				word.Store(1)
			}()
			r.NoError(inner.AwaitMapped(ctx, func() bool { return word.Load() == 1 }))
			<-stored
		})
	})
}
