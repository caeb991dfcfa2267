package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

func TestSlotReturnsValueOfSignal(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w, err := window.Allocate[int](ctx, r.World, 1, window.WithSlots(2))
		r.NoError(err)
		r.NoError(w.PutNotify(ctx, r.Right(), 0, []int{100 + r.Me}, window.Signal{Slot: 1, Value: 7}))
		_, _, err = w.WaitNotify(ctx, window.Until{Slots: []int{1}, Condition: window.NotEqual})
		r.NoError(err)
		value, err := w.Slot(1)
		r.NoError(err)
		r.EqualValues(7, value)
		r.Equal(100+r.Left(), w.Local()[0])
		value, err = w.Slot(0)
		r.NoError(err)
		r.Zero(value)
		_, err = w.Slot(2)
		r.ErrorIs(err, runtime.ErrRange)
		r.NoError(w.Free(ctx))
		_, err = w.Slot(1)
		r.ErrorIs(err, window.ErrFreed)
	})
}
