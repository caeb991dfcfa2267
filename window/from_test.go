package window_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// TestWaitFromLivingRanksOutlivesTheDeathOfAnother has the last rank die. Each other rank waits for
// it alone, and then for a signal and an element of its left neighbor.
func TestWaitFromLivingRanksOutlivesTheDeathOfAnother(t *testing.T) {
	testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int64](ctx, r, 1)
			victim, living := r.N-1, r.N-1
			left, right := (r.Me+living-1)%living, (r.Me+1)%living
			if r.Me != victim { // all have reached their peers before one dies
				r.NoError(w.PutNotify(ctx, victim, 0, nil, window.Signal{Add: true, Value: 1}))
				r.NoError(w.PutValue(ctx, right, 0, 0))
			} else {
				_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{0}, Value: uint64(living), From: []int{0, 1, 2}})
				r.NoError(err)
				r.Die()
			}

			_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{2}, Value: 1, From: []int{left, victim}})
			r.ErrorIs(err, runtime.ErrRankDead)
			var gone *runtime.RankError
			r.ErrorAs(err, &gone)
			r.Equal(victim, gone.Rank)

			r.NoError(w.PutNotify(ctx, right, 0, nil, window.Signal{Slot: 1, Value: 7}))
			for _, signed := range []bool{false, true} {
				_, value, err := w.WaitNotify(ctx, window.Until{Slots: []int{1}, Value: 7, Signed: signed, From: []int{left}})
				r.NoError(err)
				r.EqualValues(7, value)
			}
			r.NoError(window.AtomicStore(ctx, w, right, 0, 9))
			_, _, err = window.WaitUntil(ctx, w, window.Elements[int64]{At: []int{0}, Value: 9, From: []int{left}})
			r.NoError(err)

			_, _, err = w.WaitNotify(ctx, window.Until{Slots: []int{2}, Value: 1})
			r.ErrorIs(err, runtime.ErrRankDead, "without From a wait is for all ranks")
			_, _, err = w.WaitNotify(ctx, window.Until{Slots: []int{2}, Value: 1, From: []int{r.N}})
			r.ErrorIs(err, window.ErrRange)
		})
		require.ErrorContains(t, err, "ended without returning")
	})
}

// TestAbortEndsAWaitFromSomeRanks: the job's end concerns all ranks.
func TestAbortEndsAWaitFromSomeRanks(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int64](ctx, r, 1)
			if r.Me == 1 {
				r.Job.Abort(errors.New("the input is wrong"))
				return
			}
			_, _, err := w.WaitNotify(context.WithoutCancel(ctx), window.Until{Slots: []int{0}, Value: 1, From: []int{1}})
			r.ErrorIs(err, runtime.ErrAborted)
		})
		require.ErrorIs(t, err, runtime.ErrAborted)
	})
}

// TestStagedBytesAreThoseOfSmallQueuedTransfers puts and gets a slice that the device takes from
// its place, and one that it copies.
func TestStagedBytesAreThoseOfSmallQueuedTransfers(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			const small, large = 4 << 10, 256 << 10
			w := allocate[byte](ctx, r, 2*large)
			staged := func() (n uint64) {
				for _, p := range r.Job.Stats() {
					n += p.Staged
				}
				return n
			}
			r.NoError(w.Fence(ctx))
			before := staged()
			r.NoError(w.Put(ctx, r.Right(), large, w.Local()[:large]))
			r.NoError(w.Flush(ctx, r.Right()))
			r.NoError(w.Get(ctx, r.Right(), large, w.Local()[:large]))
			r.Equal(before, staged(), "a transfer between windows leaves from its place")
			r.NoError(w.Put(ctx, r.Right(), large, w.Local()[:small]))
			want := before
			if c.Provider == "tcp" && !c.Queued {
				want += small
			}
			if c.Provider == "tcp" || c.Mapped() {
				r.Equal(want, staged())
			}
			r.NoError(w.Fence(ctx))
		})
	})
}
