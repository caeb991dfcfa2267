package window_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/window"
)

// untilParked returns once goroutines of this rank went to sleep more than n times.
func untilParked(ctx context.Context, r *testjob.Rank, n uint64) error {
	for parks(r) <= n {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// parks counts the sleeps of this rank's goroutines.
func parks(r *testjob.Rank) uint64 { return team.Of(r.World).Bell().Parks() }

// whenParked has rank 0 run act once this rank sleeps in await.
func whenParked(ctx context.Context, r *testjob.Rank, w *window.Window[int64], await, act func() error) {
	if r.Me == 1 {
		told := make(chan error, 1)
		before := parks(r)
		go func() {
			err := untilParked(ctx, r, before)
			told <- errors.Join(err, w.PutNotify(ctx, 0, 0, nil, window.Signal{Slot: 9, Add: true, Value: 1}))
		}()
		r.NoError(await())
		r.NoError(<-told)
		return
	}
	_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{9}, Condition: window.NotEqual})
	r.NoError(err)
	_, err = w.ResetNotify(9, 0)
	r.NoError(errors.Join(err, act()))
}

// stores are the ways to change element 0 of a target and to wake its waiting goroutines.
var stores = map[string]func(ctx context.Context, w *window.Window[int64], target int, v int64) error{
	"AtomicStore": func(ctx context.Context, w *window.Window[int64], target int, v int64) error {
		return window.AtomicStore(ctx, w, target, 0, v)
	},
	"AtomicOr": func(ctx context.Context, w *window.Window[int64], target int, v int64) error {
		return window.AtomicOr(ctx, w, target, 0, v)
	},
	"FetchAdd": func(ctx context.Context, w *window.Window[int64], target int, v int64) error {
		_, err := window.FetchAdd(ctx, w, target, 0, v)
		return err
	},
	"Swap": func(ctx context.Context, w *window.Window[int64], target int, v int64) error {
		_, err := window.Swap(ctx, w, target, 0, v)
		return err
	},
	"CompareSwap": func(ctx context.Context, w *window.Window[int64], target int, v int64) error {
		_, err := window.CompareSwap(ctx, w, target, 0, 0, v)
		return err
	},
	"put and Flush": func(ctx context.Context, w *window.Window[int64], target int, v int64) error {
		return errors.Join(w.PutValue(ctx, target, 0, v), w.Flush(ctx, target))
	},
	"put and FlushAll": func(ctx context.Context, w *window.Window[int64], target int, v int64) error {
		return errors.Join(w.PutValue(ctx, target, 0, v), w.FlushAll(ctx))
	},
	"put and Unlock": func(ctx context.Context, w *window.Window[int64], target int, v int64) error {
		held, err := w.Lock(ctx, target, window.Shared)
		return errors.Join(err, w.PutValue(ctx, target, 0, v), held.Unlock(ctx))
	},
	"PutNotify": func(ctx context.Context, w *window.Window[int64], target int, v int64) error {
		return w.PutNotify(ctx, target, 0, []int64{v}, window.Signal{Value: 1})
	},
}

// Each store wakes a goroutine that sleeps and does not look again by itself. The race
// detector would report puts, which are no atomics.
func TestStoresRingForGoroutinesThatWaitForElements(t *testing.T) {
	for name, store := range stores {
		if testwatch.Race && strings.HasPrefix(name, "put") {
			continue
		}
		t.Run(name, func(t *testing.T) {
			testjob.EveryTransport(t, 2, func(t *testing.T, c testjob.Config) {
				if c.NIC || c.Provider == "ibv" {
					t.Skip("writes of the device ring no bell")
				}
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					w := allocate[int64](ctx, r, 1)
					want := window.Elements[int64]{At: []int{0}, Value: 7}
					whenParked(ctx, r, w, func() error {
						return w.AwaitRung(ctx, func() bool {
							_, _, ok, err := window.TestUntil(w, want)
							return ok || err != nil
						})
					}, func() error { return store(ctx, w, 1, 7) })
					r.NoError(w.Fence(ctx))
				})
			})
		})
	}
}

// A put without a flush rings no bell on mapped memory and on RDMA devices.
func TestWaitUntilReturnsAfterAPutWithoutFlush(t *testing.T) {
	if testwatch.Race {
		t.Skip("a put is no atomic")
	}
	testjob.EveryTransport(t, 2, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			w := allocate[int64](ctx, r, 3)
			for round := int64(1); round <= 3; round++ {
				whenParked(ctx, r, w, func() error {
					_, _, err := window.WaitUntil(ctx, w, window.Elements[int64]{At: []int{2}, Value: -round})
					return err
				}, func() error { return w.PutValue(ctx, 1, 2, -round) })
			}
			r.NoError(w.Fence(ctx))
		})
	})
}

func TestWaitUntilWakesEveryGoroutineForItsElement(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		const n = 16
		w := allocate[int32](ctx, r, n)
		done := make(chan error, n)
		for i := range n {
			go func() {
				at, v, err := window.WaitUntil(ctx, w, window.Elements[int32]{At: []int{i}, Condition: window.Less})
				if err == nil && (v != int32(-i-1) || at != i) {
					err = fmt.Errorf("element %d holds %d instead of %d in %d", at, v, -i-1, i)
				}
				done <- err
			}()
		}
		for i := n - 1; i >= 0; i-- {
			r.NoError(window.AtomicAdd(ctx, w, r.Right(), i, int32(-i-1)))
			r.NoError(w.Flush(ctx, r.Right()))
		}
		for range n {
			r.NoError(<-done)
		}
		r.NoError(w.Fence(ctx))
	})
}

func TestWaitUntilWaitsForAnyAllAndSomeElements(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		const n = 12
		w := allocate[uint16](ctx, r, n)
		list := make([]int, n)
		for i := range list {
			list[i] = n - 1 - i
		}
		filled := window.Elements[uint16]{At: list, Condition: window.NotEqual}
		r.NoError(window.AtomicStore(ctx, w, r.Right(), 4, 9))
		at, value, err := window.WaitUntil(ctx, w, filled)
		r.NoError(err)
		r.Equal(4, at)
		r.EqualValues(9, value)
		met, err := window.WaitSome(ctx, w, filled, []int{-1})
		r.NoError(err)
		r.Equal([]int{-1, 4}, met)
		filled.All = true
		_, _, ok, err := window.TestUntil(w, filled)
		r.NoError(err)
		r.False(ok, "one of them is not all")
		met, err = window.TestSome(w, filled, nil)
		r.NoError(err)
		r.Empty(met)
		r.NoError(r.World.Barrier(ctx), "all have seen the first store")
		for i := range n {
			r.NoError(window.AtomicStore(ctx, w, r.Right(), i, uint16(100+i)))
		}
		at, value, err = window.WaitUntil(ctx, w, filled)
		r.NoError(err)
		r.Zero(at)
		r.Contains([]uint16{100}, value)
		met, err = window.WaitSome(ctx, w, filled, nil)
		r.NoError(err)
		r.Equal(list, met)
		r.NoError(w.Fence(ctx))
	})
}

// TestTestUntilAgreesWithGo compares the conditions, on types of every width and kind, with
// Go's operators.
func TestTestUntilAgreesWithGo(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		agree(ctx, t, r, []int8{math.MinInt8, -3, 0, 1, math.MaxInt8})
		agree(ctx, t, r, []uint8{0, 1, 200, math.MaxUint8})
		agree(ctx, t, r, []int16{math.MinInt16, -1, 0, 1})
		agree(ctx, t, r, []uint32{0, 1, math.MaxInt32 + 1, math.MaxUint32})
		agree(ctx, t, r, []int32{math.MinInt32, -3, 0, 1, math.MaxInt32})
		agree(ctx, t, r, []int64{math.MinInt64, -3, 0, 1, math.MaxInt64})
		agree(ctx, t, r, []uint64{0, 1, math.MaxInt64 + 1, math.MaxUint64})
		agree(ctx, t, r, []float32{float32(math.Inf(-1)), -0.5, 0, float32(math.NaN()), 2})
		agree(ctx, t, r, []float64{math.Inf(1), -0.5, math.Copysign(0, -1), 0, math.NaN()})
	})
}

func agree[T window.Number](ctx context.Context, t *testing.T, r *testjob.Rank, values []T) {
	operators := map[window.Condition]func(a, b T) bool{
		window.Equal: func(a, b T) bool { return a == b }, window.NotEqual: func(a, b T) bool { return a != b },
		window.Less: func(a, b T) bool { return a < b }, window.AtMost: func(a, b T) bool { return a <= b },
		window.Greater: func(a, b T) bool { return a > b }, window.AtLeast: func(a, b T) bool { return a >= b },
	}
	const n = 5
	w := allocate[T](ctx, r, n)
	rapid.Check(t, func(rt *rapid.T) {
		value := rapid.SampledFrom(values)
		copy(w.Local(), rapid.SliceOfN(value, n, n).Draw(rt, "elements"))
		u := window.Elements[T]{At: rapid.SliceOfN(rapid.IntRange(0, n-1), 1, n).Draw(rt, "at"), Value: value.Draw(rt, "value"),
			Condition: window.Condition(rapid.IntRange(0, int(window.Less)).Draw(rt, "condition")), All: rapid.Bool().Draw(rt, "all")}
		if rapid.Bool().Draw(rt, "one by one") {
			u.Values = rapid.SliceOfN(value, len(u.At), len(u.At)).Draw(rt, "values")
		}
		var want []int
		for i, at := range u.At {
			v := u.Value
			if u.Values != nil {
				v = u.Values[i]
			}
			if operators[u.Condition](w.Local()[at], v) {
				want = append(want, at)
			}
		}
		if u.All && len(want) < len(u.At) {
			want = nil
		}
		at, _, ok, err := window.TestUntil(w, u)
		require.NoError(rt, err)
		require.Equal(rt, want != nil, ok)
		met, err := window.TestSome(w, u, nil)
		require.NoError(rt, err)
		require.Equal(rt, want, met)
		switch {
		case ok && u.All:
			require.Equal(rt, u.At[len(u.At)-1], at)
		case ok:
			require.Equal(rt, want[0], at)
		}
	})
	r.NoError(w.Free(ctx))
}

func TestFreeEndsWaitUntilWithErrFreed(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		for range 20 {
			w := allocate[int64](ctx, r, 8)
			ended := make(chan error, 4)
			for i := range cap(ended) {
				go func() {
					_, _, err := window.WaitUntil(ctx, w, window.Elements[int64]{At: []int{i}, Condition: window.Greater})
					ended <- err
				}()
			}
			r.NoError(w.Free(ctx))
			next := allocate[int64](ctx, r, 1<<10) // of the same memory
			for range cap(ended) {
				r.ErrorIs(<-ended, window.ErrFreed)
			}
			r.Equal(make([]int64, 1<<10), next.Local(), "a goroutine that waited wrote to the memory behind")
			r.NoError(next.Free(ctx))
		}
	})
}

func TestCanceledWaitUntilReturnsItsCause(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[float32](ctx, r, 1)
		cause := errors.New("late")
		over, cancel := context.WithCancelCause(ctx)
		before := parks(r)
		go func() { _ = untilParked(ctx, r, before); cancel(cause) }()
		_, _, err := window.WaitUntil(over, w, window.Elements[float32]{At: []int{0}, Value: 1})
		r.ErrorIs(err, cause)
		var op *window.OpError
		r.ErrorAs(err, &op)
		r.Equal("WaitUntil", op.Op)
		_, _, err = window.WaitUntil(over, w, window.Elements[float32]{At: []int{0}})
		r.NoError(err, "it does not wait")
		r.NoError(w.Fence(ctx))
	})
}

func TestElementsBeyondTheWindowReturnErrRange(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, elems)
		for _, u := range []window.Elements[int64]{{}, {At: []int{0, elems}}, {At: []int{-1}}, {At: []int{math.MaxInt}}, {At: []int{math.MinInt}},
			{At: []int{0}, Values: []int64{1, 2}}, {At: []int{0}, Condition: window.Less + 1}} {
			_, _, err := window.WaitUntil(ctx, w, u)
			r.ErrorIs(err, window.ErrRange)
			r.ErrorContains(err, "WaitUntil")
			_, _, _, err = window.TestUntil(w, u)
			r.ErrorIs(err, window.ErrRange)
			_, err = window.WaitSome(ctx, w, u, nil)
			r.ErrorIs(err, window.ErrRange)
			_, err = window.TestSome(w, u, nil)
			r.ErrorIs(err, window.ErrRange)
		}
		r.NoError(w.Fence(ctx))
	})
}
