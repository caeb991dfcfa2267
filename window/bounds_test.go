package window_test

import (
	"context"
	"math"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

// An access is one operation on n elements from index at target.
type access struct {
	op   string
	call func(ctx context.Context, w *window.Window[int64], target, index, n int) error
}

// ranged are the operations that take any number of elements.
var ranged = []access{
	{"Put", func(ctx context.Context, w *window.Window[int64], target, index, n int) error {
		return w.Put(ctx, target, index, make([]int64, n))
	}},
	{"Get", func(ctx context.Context, w *window.Window[int64], target, index, n int) error {
		return w.Get(ctx, target, index, make([]int64, n))
	}},
	{"StartPut", func(ctx context.Context, w *window.Window[int64], target, index, n int) error {
		_, err := w.StartPut(ctx, target, index, make([]int64, n))
		return err
	}},
	{"StartGet", func(ctx context.Context, w *window.Window[int64], target, index, n int) error {
		_, err := w.StartGet(ctx, target, index, make([]int64, n))
		return err
	}},
	{"PutNotify", func(ctx context.Context, w *window.Window[int64], target, index, n int) error {
		return w.PutNotify(ctx, target, index, make([]int64, n), window.Signal{Value: 1})
	}},
}

// single are the operations on one element.
var single = []access{
	{"Put", func(ctx context.Context, w *window.Window[int64], target, index, _ int) error {
		return w.PutValue(ctx, target, index, 1)
	}},
	{"Get", func(ctx context.Context, w *window.Window[int64], target, index, _ int) error {
		_, err := w.GetValue(ctx, target, index)
		return err
	}},
	fetches("FetchAdd", window.FetchAdd[int64]), fetches("FetchAnd", window.FetchAnd[int64]),
	fetches("FetchOr", window.FetchOr[int64]), fetches("FetchXor", window.FetchXor[int64]),
	fetches("Swap", window.Swap[int64]),
	updates("AtomicStore", window.AtomicStore[int64]), updates("AtomicAdd", window.AtomicAdd[int64]),
	updates("AtomicAnd", window.AtomicAnd[int64]), updates("AtomicOr", window.AtomicOr[int64]),
	updates("AtomicXor", window.AtomicXor[int64]),
	{"CompareSwap", func(ctx context.Context, w *window.Window[int64], target, index, _ int) error {
		_, err := window.CompareSwap(ctx, w, target, index, 0, 1)
		return err
	}},
	{"AtomicLoad", func(ctx context.Context, w *window.Window[int64], target, index, _ int) error {
		_, err := window.AtomicLoad(ctx, w, target, index)
		return err
	}},
}

func fetches(op string, f func(context.Context, *window.Window[int64], int, int, int64) (int64, error)) access {
	return access{op, func(ctx context.Context, w *window.Window[int64], target, index, _ int) error {
		_, err := f(ctx, w, target, index, 1)
		return err
	}}
}

func updates(op string, f func(context.Context, *window.Window[int64], int, int, int64) error) access {
	return access{op, func(ctx context.Context, w *window.Window[int64], target, index, _ int) error {
		return f(ctx, w, target, index, 1)
	}}
}

// whole are the operations on a target as a whole.
var whole = []access{
	{"Flush", func(ctx context.Context, w *window.Window[int64], target, _, _ int) error {
		return w.Flush(ctx, target)
	}},
	{"Order", func(_ context.Context, w *window.Window[int64], target, _, _ int) error { return w.Order(target) }},
	{"Shared", func(ctx context.Context, w *window.Window[int64], target, _, _ int) error {
		_, err := w.Shared(ctx, target)
		return err
	}},
	{"Lock", func(ctx context.Context, w *window.Window[int64], target, _, _ int) error {
		_, err := w.Lock(ctx, target, window.Exclusive)
		return err
	}},
}

const elems = 16

func TestArgumentsBeyondTheWindowReturnErrRangeAndChangeNothing(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, elems, window.WithName("grid"), window.WithSlots(4))
		check := func() {
			for _, target := range []int{-1, r.N, math.MaxInt, math.MinInt} {
				for _, a := range ranged {
					refused(ctx, r, w, a, target, 0, 1)
					refused(ctx, r, w, a, target, 0, 0)
				}
				for _, a := range single {
					refused(ctx, r, w, a, target, 0, 1)
				}
				for _, a := range whole {
					refused(ctx, r, w, a, target, -1, 0)
				}
			}
			for _, index := range []int{-1, elems, elems + 1, math.MaxInt, math.MinInt, math.MaxInt / 8, math.MaxInt/8 + 1} {
				for _, a := range single {
					refused(ctx, r, w, a, r.Right(), index, 1)
				}
			}
			for _, c := range [][2]int{{-1, 1}, {-1, 0}, {elems, 1}, {elems + 1, 0}, {1, elems}, {0, elems + 1},
				{math.MaxInt, 2}, {math.MinInt, 1}, {math.MaxInt, 0}} {
				for _, a := range ranged {
					refused(ctx, r, w, a, r.Right(), c[0], c[1])
				}
			}
		}
		check() // no rank is connected yet
		r.NoError(w.Fence(ctx))
		_, err := w.GetValue(ctx, r.Right(), 0)
		r.NoError(err)
		check() // and with the target in reach
		r.NoError(w.Fence(ctx))
		r.Equal(make([]int64, elems), w.Local())
		_, _, _, err = w.TestNotify(window.Until{Slots: []int{0}, Condition: window.Less + 1})
		r.ErrorIs(err, window.ErrRange)
		_, _, err = w.WaitNotify(ctx, window.Until{Slots: []int{4}})
		r.ErrorContains(err, "notification slot 4: out of range [0, 4)")
		_, value, ok, err := w.TestNotify(window.Until{Slots: []int{0, 1, 2, 3}, Condition: window.NotEqual})
		r.NoError(err)
		r.False(ok, "slot holds %d", value)
	})
}

// refused checks that an access fails with an error that names its cause.
func refused(ctx context.Context, r *testjob.Rank, w *window.Window[int64], a access, target, index, n int) {
	err := a.call(ctx, w, target, index, n)
	r.ErrorIs(err, window.ErrRange, "%s at %d from %d", a.op, target, index)
	r.ErrorContains(err, "out of range [0, ", "the limits")
	var op *window.OpError
	r.ErrorAs(err, &op, a.op)
	r.Equal(a.op, op.Op)
	r.Equal("grid", op.Window)
	r.Equal(r.Me, op.Rank)
	r.Equal(target, op.Target)
	r.Equal(index, op.Index)
	if index >= 0 {
		r.Equal(n, op.Count)
		r.Equal(elems, op.Limit)
	}
	r.ErrorContains(err, a.op)
	r.ErrorContains(err, "grid")
}

func TestErrorsOfFloatAdditionsNameTheCall(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[float64](ctx, r, 2)
		_, err := window.FetchAdd(ctx, w, r.Right(), 2, 1.5)
		var op *window.OpError
		r.ErrorAs(err, &op)
		r.Equal("FetchAdd", op.Op)
		r.ErrorIs(err, window.ErrRange)
	})
}

func TestCallsReachTheLastElements(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, elems)
		for _, a := range ranged {
			r.NoError(a.call(ctx, w, r.Right(), elems-3, 3), a.op)
			r.NoError(a.call(ctx, w, r.Right(), elems, 0), a.op)
			r.NoError(a.call(ctx, w, r.Right(), 0, elems), a.op)
		}
		for _, a := range single {
			r.NoError(a.call(ctx, w, r.Right(), elems-1, 1), a.op)
		}
	})
}

func TestSlotsBeyondTheWindowReturnErrRange(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, elems, window.WithSlots(2))
		for _, slot := range []int{-1, 2, math.MaxInt, math.MinInt} {
			err := w.PutNotify(ctx, r.Right(), 0, []int64{1}, window.Signal{Slot: slot, Value: 1})
			slotRefused(r, err, "PutNotify", slot)
			_, _, err = w.WaitNotify(ctx, window.Until{Slots: []int{0, slot}, Value: 1})
			slotRefused(r, err, "WaitNotify", slot)
			_, _, _, err = w.TestNotify(window.Until{Slots: []int{slot}, Value: 1})
			slotRefused(r, err, "TestNotify", slot)
			_, err = w.ResetNotify(slot, 1)
			slotRefused(r, err, "ResetNotify", slot)
		}
		_, _, err := w.WaitNotify(ctx, window.Until{})
		r.ErrorIs(err, window.ErrRange)
		r.NoError(w.Fence(ctx))
		r.Equal(make([]int64, elems), w.Local())
	})
}

func slotRefused(r *testjob.Rank, err error, op string, slot int) {
	r.ErrorIs(err, window.ErrRange)
	var e *window.OpError
	r.ErrorAs(err, &e)
	r.Equal(op, e.Op)
	r.Equal(slot, e.Index)
	r.Equal(2, e.Limit)
}
