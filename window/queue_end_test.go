package window_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// TestEpochsOutliveTheQueueThatBeganThem closes the queues of both epochs before their ends. The targets see
// the puts, and further epochs begin.
func TestEpochsOutliveTheQueueThatBeganThem(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		for round := range int64(3) {
			q := newQueue(r)
			x := through(r, w, q)
			exposure, err := x.Post(ctx, []int{r.Left()})
			r.NoError(err)
			access, err := x.Start(ctx, []int{r.Right()})
			r.NoError(err)
			r.NoError(x.PutValue(ctx, r.Right(), 0, 100*round+int64(r.Me)))
			r.NoError(q.Close(ctx))
			_, err = w.Start(ctx, []int{r.Right()})
			r.ErrorIs(err, window.ErrEpoch)
			r.NoError(access.Complete(ctx))
			for ended := false; !ended && round == 1; {
				ended, err = exposure.Test()
				r.NoError(err)
			}
			if round != 1 {
				r.NoError(exposure.Wait(ctx))
			}
			r.Equal(100*round+int64(r.Left()), w.Local()[0])
		}
		q := newQueue(r)
		exposure, err := through(r, w, q).Post(ctx, nil)
		r.NoError(err)
		r.NoError(q.Close(ctx))
		r.NoError(w.Free(ctx))
		r.ErrorIs(exposure.Wait(ctx), window.ErrFreed)
	})
}

func TestFlushAllOfAQueueAllocatesNothing(t *testing.T) {
	for _, c := range []testjob.Config{{Provider: "shm", Ranks: 2}, {Provider: "loop", Queued: true, Ranks: 2}} { // a wait over tcp may park, which allocates
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w, other := allocate[int64](ctx, r, 1), allocate[int32](ctx, r, 1)
			q := newQueue(r)
			x, y := through(r, w, q), through(r, other, q)
			if r.Me == 0 {
				measure(t, "FlushAll", func() error {
					require.NoError(t, x.PutValue(ctx, 1, 0, 1))
					require.NoError(t, y.PutValue(ctx, 1, 0, 1))
					require.NoError(t, q.Order())
					return q.FlushAll(ctx)
				})
			}
			r.NoError(w.Fence(ctx))
			r.NoError(q.Close(ctx))
		})
	}
}

func TestTeamOfNoJobIsErrTeam(t *testing.T) {
	for _, none := range []*runtime.Team{nil, {}} {
		_, err := window.NewQueue(none)
		require.ErrorIs(t, err, window.ErrTeam)
		_, err = window.Allocate[int64](t.Context(), none, 1)
		require.ErrorIs(t, err, window.ErrTeam)
		_, err = window.RegisterOp(t.Context(), none, "sum", func(a, b int64) int64 { return a + b })
		require.ErrorIs(t, err, window.ErrTeam)
		_, _, _, err = window.Find(none, window.Pointer[int64]{})
		require.ErrorIs(t, err, window.ErrTeam)
	}
}

// TestEpochEndsWithErrorBehindAFailedClose has a queue close that leads to a dead rank too. Close fails, so
// no rank knows whether the puts of the epoch have arrived. Complete fails, and the target's epoch goes on.
func TestEpochEndsWithErrorBehindAFailedClose(t *testing.T) {
	var met sync.WaitGroup // ranks that have left the barrier, ahead of the death
	met.Add(3)
	err := testjob.Config{Provider: "loop", Queued: true, Ranks: 3}.Try(t, func(ctx context.Context, r *testjob.Rank) {
		const origin, target, victim = 0, 1, 2
		w := allocate[int64](ctx, r, 1)
		if r.Me == target {
			exposure, err := w.Post(ctx, []int{origin})
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			met.Done()
			ctx = context.WithoutCancel(ctx) // the death ends the job's
			_ = r.World.Barrier(ctx)         // fails with the death
			ended, err := exposure.Test()
			r.NoError(err)
			r.False(ended)
			return
		}
		q := newQueue(r)
		x := through(r, w, q)
		var access window.Access
		if r.Me == origin {
			var err error
			access, err = x.Start(ctx, []int{target})
			r.NoError(err)
			r.NoError(x.PutValue(ctx, target, 0, 7))
			r.NoError(x.PutValue(ctx, victim, 0, 7))
			r.NoError(x.Flush(ctx, victim))
		}
		r.NoError(r.World.Barrier(ctx))
		met.Done()
		if r.Me == victim {
			met.Wait()
			r.Die()
		}
		ctx = context.WithoutCancel(ctx)
		r.ErrorIs(repeat(ctx, func() error {
			return errors.Join(x.PutValue(ctx, victim, 0, 8), x.Flush(ctx, victim))
		}), runtime.ErrRankDead)
		r.ErrorIs(q.Close(ctx), runtime.ErrRankDead)
		r.ErrorIs(access.Complete(ctx), window.ErrFreed)
	})
	require.ErrorContains(t, err, "ended without returning")
}
