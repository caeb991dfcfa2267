package window_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// All ranks draw the same pairs of origins and targets in each round. A target sees all that its
// origins did, and nothing of the next round.
func TestEpochsPairOriginsWithTargets(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 2*r.N)
		rng := rand.New(rand.NewPCG(3, uint64(r.N)))
		sums := make([]int64, r.N)
		for round := int64(1); round <= 40; round++ {
			var targets, origins []int
			for origin := range r.N {
				for target := range r.N {
					if rng.IntN(2) == 0 {
						continue
					}
					if origin == r.Me {
						targets = append(targets, target)
					}
					if target == r.Me {
						origins = append(origins, origin)
						sums[origin] += round
					}
				}
			}
			exposure, err := w.Post(ctx, origins)
			r.NoError(err)
			access, err := w.Start(ctx, targets)
			r.NoError(err)
			for _, target := range targets {
				r.NoError(w.PutValue(ctx, target, r.Me, round))
				r.NoError(window.AtomicAdd(ctx, w, target, r.N+r.Me, round))
			}
			r.NoError(access.Complete(ctx))
			if round%2 == 0 {
				r.NoError(exposure.Wait(ctx))
			} else {
				r.NoError(repeatUntil(ctx, exposure.Test))
			}
			for _, origin := range origins {
				r.Equal(round, w.Local()[origin])
				r.Equal(sums[origin], w.Local()[r.N+origin])
			}
		}
		r.NoError(r.World.Barrier(ctx))
		r.NoError(w.Free(ctx))
	})
}

func repeatUntil(ctx context.Context, f func() (bool, error)) error {
	over := errors.New("over")
	err := repeat(ctx, func() error {
		done, err := f()
		if done && err == nil {
			err = over
		}
		return err
	})
	if errors.Is(err, over) {
		return nil
	}
	return err
}

func TestEpochsOutOfTurnAreRefused(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1, window.WithAttachments(1))
		r.ErrorIs(window.Access{}.Complete(ctx), window.ErrEpoch)
		r.ErrorIs(window.Exposure{}.Wait(ctx), window.ErrEpoch)
		for _, wrong := range [][]int{{r.N}, {-1}, {window.Null}, {0, 0}} {
			_, err := w.Post(ctx, wrong)
			r.ErrorIs(err, window.ErrRange)
			_, err = w.Start(ctx, wrong)
			r.ErrorIs(err, window.ErrRange)
		}
		self := []int{r.Me}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, err := w.Start(ended, self)
		r.ErrorIs(err, context.Canceled)
		exposure, err := w.Post(ctx, self)
		r.NoError(err)
		_, err = w.Post(ctx, self)
		r.ErrorIs(err, window.ErrEpoch)
		over, err := exposure.Test()
		r.NoError(err)
		r.False(over)
		waiting, stop := context.WithCancel(ctx)
		result := make(chan error)
		go func() {
			err := window.ErrEpoch
			for errors.Is(err, window.ErrEpoch) { // a Test of the other goroutine was under way
				err = exposure.Wait(waiting)
			}
			result <- err
		}()
		r.NoError(repeatUntil(ctx, func() (bool, error) { // until the other goroutine waits
			_, err := exposure.Test()
			if errors.Is(err, window.ErrEpoch) {
				return true, nil
			}
			return false, err
		}))
		stop()
		r.ErrorIs(<-result, context.Canceled)
		r.ErrorIs(exposure.Wait(ended), context.Canceled)
		access, err := w.Start(ctx, self)
		r.NoError(err)
		_, err = w.Start(ctx, self)
		r.ErrorIs(err, window.ErrEpoch)
		r.NoError(access.Complete(ctx))
		r.ErrorIs(access.Complete(ctx), window.ErrEpoch)
		r.NoError(exposure.Wait(ctx))
		r.ErrorIs(exposure.Wait(ctx), window.ErrEpoch)
		_, err = exposure.Test()
		r.ErrorIs(err, window.ErrEpoch)
		none, err := w.Post(ctx, nil)
		r.NoError(err)
		over, err = none.Test()
		r.NoError(err)
		r.True(over)

		p, _, err := w.Attach(ctx, 1)
		r.NoError(err)
		a, err := w.Open(ctx, p)
		r.NoError(err)
		_, err = a.Post(ctx, self)
		r.ErrorIs(err, window.ErrPart)
		r.NoError(a.Close(ctx))
		r.NoError(w.Detach(ctx, p))
		exposure, err = w.Post(ctx, nil)
		r.NoError(err)
		r.NoError(w.Free(ctx))
		_, err = exposure.Test()
		r.ErrorIs(err, window.ErrFreed, "the words are memory of another window by now")
		_, err = w.Start(ctx, self)
		r.ErrorIs(err, window.ErrFreed)
	})
}

// The last rank dies between its Post and its Start. The waits of the others end. None of them closes its job before
// all have heard of the death.
func TestEpochsAfterTheDeathOfARank(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		var waits sync.WaitGroup
		waits.Add(c.Ranks - 1)
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int64](ctx, r, 1)
			var all []int
			for rank := range r.N {
				all = append(all, rank)
			}
			exposure, err := w.Post(ctx, all)
			if r.Me == r.N-1 {
				r.NoError(err)
				r.Die()
			}
			if err == nil {
				err = exposure.Wait(ctx)
			}
			waits.Done()
			waits.Wait()
			r.ErrorIs(err, runtime.ErrRankDead)
		})
		require.ErrorContains(t, err, "ended without returning")
	})
}
