package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// TestWaitsEndOnceAllRanksThatMayMeetThemHaveReturned has rank 1 return at once, and rank 2
// later. Rank 0 waits for both, and then for rank 2.
func TestWaitsEndOnceAllRanksThatMayMeetThemHaveReturned(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		t.Parallel() // a rank asks after it has waited for 200 ms
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int64](ctx, r, 2)
			never := window.Until{Slots: []int{0}, Value: 1}
			left := func(rank int, err error) {
				r.ErrorIs(err, runtime.ErrClosed)
				var e *runtime.RankError
				r.ErrorAs(err, &e)
				r.Equal(rank, e.Rank)
				r.ErrorContains(err, "its body returned")
			}
			fromRank1 := func() {
				never.From = []int{1}
				var none context.Context // never ends
				_, _, err := w.WaitNotify(none, never)
				left(1, err)
				never.From = nil
			}
			switch r.Me {
			case 0:
				fromRank1()
				_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{1}, Value: 7})
				r.NoError(err, "rank 2 has not returned")
				_, v, err := window.WaitUntil(ctx, w, window.Elements[int64]{At: []int{0}, Value: 9, From: []int{2}})
				r.NoError(err, "rank 2 returned behind the store")
				r.EqualValues(9, v)
				_, _, err = window.WaitUntil(ctx, w, window.Elements[int64]{At: []int{1}, Value: 1})
				left(2, err)
				r.ErrorContains(err, "so did all other ranks")
				_, _, err = w.WaitNotify(ctx, never)
				left(2, err)
			case 2:
				fromRank1() // so that rank 0 has asked, mostly
				r.NoError(w.PutNotify(ctx, 0, 0, nil, window.Signal{Slot: 1, Value: 7}))
				r.NoError(window.AtomicStore(ctx, w, 0, 0, 9))
			}
		})
	})
}

// TestEpochsEndWhenAPeerReturns has rank 1 return with calls of an epoch missing.
func TestEpochsEndWhenAPeerReturns(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		t.Parallel() // a rank asks after it has waited for 200 ms
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int64](ctx, r, 1)
			if r.Me == 1 {
				access, err := w.Start(ctx, []int{0})
				r.NoError(err)
				r.NoError(access.Complete(ctx))
				return
			}
			for _, end := range []func(error){func(err error) { r.NoError(err) }, func(err error) { r.ErrorIs(err, runtime.ErrClosed) }} {
				exposure, err := w.Post(ctx, []int{1})
				r.NoError(err)
				end(exposure.Wait(ctx))
			}
			_, err := w.Start(ctx, []int{1})
			r.ErrorIs(err, runtime.ErrClosed)
			r.ErrorContains(err, "rank 1")
		})
	})
}

// TestAWaitForThisRankOutlivesTheOthers has a goroutine of rank 0 signal rank 0 once rank 1 has returned.
func TestAWaitForThisRankOutlivesTheOthers(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		t.Parallel() // a rank asks after it has waited for 200 ms
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int64](ctx, r, 1)
			if r.Me == 1 {
				return
			}
			told := make(chan error, 1)
			go func() {
				_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{0}, Value: 1})
				if err != nil { // rank 1 has returned
					err = w.PutNotify(ctx, 0, 0, nil, window.Signal{Slot: 1, Value: 1})
				}
				told <- err
			}()
			_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{1}, Value: 1, From: []int{0, 1}})
			r.NoError(err)
			r.NoError(<-told)
		})
	})
}
