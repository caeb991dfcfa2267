package window_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/window"
)

func TestFenceMakesPutsVisibleToAllRanks(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int32](ctx, r, r.N)
		for round := range 30 {
			for to := range r.N {
				r.NoError(w.PutValue(ctx, to, r.Me, int32(round*r.N+r.Me)))
			}
			r.NoError(w.Fence(ctx))
			for from, v := range w.Local() {
				r.EqualValues(round*r.N+from, v)
			}
			r.NoError(w.Fence(ctx))
		}
	})
}

func TestFlushMakesPutsVisibleToAThirdRank(t *testing.T) {
	testjob.All(t, 3, func(ctx context.Context, r *testjob.Rank) {
		data := allocate[int64](ctx, r, 64)
		flag := allocate[int64](ctx, r, 1)
		src, dst := make([]int64, 64), make([]int64, 64)
		for round := int64(1); round <= 20; round++ {
			if r.Me == 0 { // puts at 1, signals 2
				for i := range src {
					src[i] = round
				}
				r.NoError(data.Put(ctx, 1, 0, src))
				r.NoError(data.Flush(ctx, 1))
				r.NoError(flag.PutNotify(ctx, 2, 0, nil, window.Signal{Value: uint64(round)}))
			}
			if r.Me == 2 {
				_, _, err := flag.WaitNotify(ctx, window.Until{Slots: []int{0}, Value: uint64(round)})
				r.NoError(err)
				r.NoError(data.Get(ctx, 1, 0, dst))
				for _, v := range dst {
					r.Equal(round, v)
				}
			}
			r.NoError(r.World.Barrier(ctx))
		}
	})
}

func TestFlushAllReachesEveryTarget(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, r.N)
		r.NoError(w.FlushAll(ctx), "nothing to do")
		for to := range r.N {
			r.NoError(w.PutValue(ctx, to, r.Me, int64(to+1)))
		}
		r.NoError(w.FlushAll(ctx))
		r.NoError(r.World.Barrier(ctx))
		for _, v := range w.Local() {
			r.EqualValues(r.Me+1, v)
		}
	})
}

// TestOrderKeepsAPutBehindAGet relies on Order alone: the queue pair may let the
// put pass the get, and in this test it does whenever it may.
func TestOrderKeepsAPutBehindAGet(t *testing.T) {
	c := testjob.Config{Provider: "loop", Queued: true, Ranks: 2}
	c.Run(t, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		for round := int64(1); round <= 50; round++ {
			before := make([]int64, 1)
			get, err := w.StartGet(ctx, r.Right(), 0, before)
			r.NoError(err)
			r.NoError(w.Order(r.Right()))
			r.NoError(w.PutValue(ctx, r.Right(), 0, round))
			r.NoError(get.Wait(ctx))
			r.Equal(round-1, before[0], "the put went ahead of the get")
			r.NoError(w.Flush(ctx, r.Right()))
		}
		r.NoError(w.Fence(ctx))
	}, disturbed(faulty.Plan{Seed: 1, Reorder: 1}))
}

func TestOneSidedCallsComeFromAnyGoroutine(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		const goroutines, each = 8, 50
		w := allocate[int64](ctx, r, goroutines)
		done := make(chan error, goroutines)
		for g := range goroutines {
			go func() {
				for i := range int64(each) {
					err := w.PutValue(ctx, r.Right(), g, i+1)
					if err == nil {
						err = w.Flush(ctx, r.Right())
					}
					if v, err2 := w.GetValue(ctx, r.Right(), g); err != nil || err2 != nil || v != i+1 {
						done <- errors.Join(fmt.Errorf("goroutine %d: %d instead of %d", g, v, i+1), err, err2)
						return
					}
				}
				done <- nil
			}()
		}
		for range goroutines {
			r.NoError(<-done)
		}
		r.NoError(w.Fence(ctx))
	})
}
