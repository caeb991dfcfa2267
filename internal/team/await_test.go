package team_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
)

// TestWaitsFindAWordThatWasStoredWithoutARing stores the word while the goroutine that waits
// for it sleeps.
func TestWaitsFindAWordThatWasStoredWithoutARing(t *testing.T) {
	testjob.EachTransport(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			inner := team.Of(r.World)
			for _, await := range []func(context.Context, func() bool) error{
				inner.AwaitMapped, inner.WaitStored,
				func(ctx context.Context, ready func() bool) error { return inner.AwaitFrom(ctx, nil, false, ready) },
			} {
				word, stored, before := new(atomic.Uint64), make(chan struct{}), inner.Bell().Parks()
				go func() {
					defer close(stored)
					// AwaitFrom rings once itself, ahead of its second sleep.
					for inner.Bell().Parks() < before+2 && ctx.Err() == nil {
						time.Sleep(time.Millisecond)
					}
					word.Store(1)
				}()
				r.NoError(await(ctx, func() bool { return word.Load() == 1 }))
				<-stored
			}
		})
	})
}

// TestMembersThatShareCoresLookLessOftenBeforeTheyYield counts the looks ahead of the first yield, at
// which a wait looks at its context.
func TestMembersThatShareCoresLookLessOftenBeforeTheyYield(t *testing.T) {
	testjob.EachTransport(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			inner := team.Of(r.World)
			if !inner.Mapped {
				return // each look is a system call, and so they are few in any case
			}
			ended, cancel := context.WithCancel(ctx)
			cancel()
			for _, await := range []func(context.Context, func() bool) error{
				inner.Await, inner.AwaitMapped, inner.WaitStored,
				func(ctx context.Context, ready func() bool) error { return inner.AwaitFrom(ctx, nil, true, ready) },
				func(ctx context.Context, ready func() bool) error { return inner.AwaitMember(ctx, 0, ready) },
			} {
				looks := func(perCore int) (n int) {
					inner.PerCore = perCore
					r.ErrorIs(await(ended, func() bool { n++; return false }), context.Canceled)
					return n
				}
				r.Less(looks(2), looks(1))
			}
		})
	})
}
