package window_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/window"
)

// hot are the calls that allocate nothing, with arguments as programs write them:
// literals, arrays of the caller's stack as values, and slices that live
// elsewhere. (An array whose slice is passed to Put escapes: the memory that a
// queue reads must not move, and stacks move.)
func hot(ctx context.Context, w *window.Window[int64], f *window.Window[float64], a *window.Window[[4]int64], target int) map[string]func() error {
	block, earlier, met := make([]int64, 16), make([]int64, 16), make([]int, 0, 2)
	return map[string]func() error{
		"PutValue": func() error { return w.PutValue(ctx, target, 0, 42) },
		"GetValue": func() error { _, err := w.GetValue(ctx, target, 0); return err },
		"Put":      func() error { return w.Put(ctx, target, 0, block) },
		"Get":      func() error { return w.Get(ctx, target, 0, block) },
		"PutValue of an array": func() error {
			var quad [4]int64
			quad[3] = 7
			return a.PutValue(ctx, target, 0, quad)
		},
		"GetValue of an array": func() error {
			quad, err := a.GetValue(ctx, target, 0)
			if err == nil && quad[3] != 7 {
				err = errors.New("not what was put")
			}
			return err
		},
		"StartPut": func() error { return started(ctx)(w.StartPut(ctx, target, 0, block)) },
		"StartGet": func() error { return started(ctx)(w.StartGet(ctx, target, 0, block)) },
		"PutBlocks": func() error {
			return w.PutBlocks(ctx, target, 0, window.Strided(4, 1, 2), block, window.Box([]int{4, 4}, []int{0, 1}, []int{4, 1}))
		},
		"GetBlocks": func() error {
			return w.GetBlocks(ctx, target, 0, window.Strided(4, 1, 2), block, window.Blocks{})
		},
		"StartGetBlocks": func() error {
			return started(ctx)(w.StartGetBlocks(ctx, target, 0, window.Strided(4, 1, 2), block, window.Strided(4, 1, 3)))
		},
		"PutBlocksNotify": func() error {
			return w.PutBlocksNotify(ctx, target, 0, window.Strided(4, 1, 2), block, window.Blocks{}, window.Signal{Slot: 2, Value: 1})
		},
		"PutNotify":   func() error { return w.PutNotify(ctx, target, 0, block, window.Signal{Slot: 2, Value: 1}) },
		"Flush":       func() error { return w.Flush(ctx, target) },
		"FlushAll":    func() error { return w.FlushAll(ctx) },
		"Order":       func() error { return w.Order(target) },
		"FetchAdd":    func() error { _, err := window.FetchAdd(ctx, w, target, 1, 1); return err },
		"FetchXor":    func() error { _, err := window.FetchXor(ctx, w, target, 1, 1); return err },
		"CompareSwap": func() error { _, err := window.CompareSwap(ctx, w, target, 2, 0, 1); return err },
		"AtomicLoad":  func() error { _, err := window.AtomicLoad(ctx, w, target, 1); return err },
		"AtomicStore": func() error { return window.AtomicStore(ctx, w, target, 1, 5) },
		"AtomicAdd":   func() error { return window.AtomicAdd(ctx, w, target, 1, 5) },
		"Accumulate":  func() error { return window.Accumulate(ctx, w, target, 0, block, window.Sum[int64]()) },
		"GetAccumulate": func() error {
			return window.GetAccumulate(ctx, w, target, 0, block, earlier, window.Max[int64]())
		},
		"StartGetAccumulate": func() error {
			return started(ctx)(window.StartGetAccumulate(ctx, w, target, 0, block, earlier, window.NoOp[int64]()))
		},
		"StartFetchOp": func() error {
			return started(ctx)(window.StartFetchOp(ctx, w, target, 1, 3, window.Prod[int64](), &earlier[0]))
		},
		"float sum": func() error { _, err := window.FetchAdd(ctx, f, target, 0, 0.5); return err },
		"signal":    func() error { return w.PutNotify(ctx, target, 0, nil, window.Signal{Slot: 1, Add: true, Value: 1}) },
		"TestNotify": func() error {
			_, _, _, err := w.TestNotify(window.Until{Slots: []int{0, 1}, Condition: window.AtLeast, Value: 1})
			return err
		},
		"WaitNotify": func() error {
			_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{1, 2}, Condition: window.AtLeast, Signed: true})
			return err
		},
		"WaitUntil": func() error {
			_, _, err := window.WaitUntil(ctx, w, window.Elements[int64]{At: []int{5, 6}})
			return err
		},
		"TestUntil": func() error {
			_, _, _, err := window.TestUntil(w, window.Elements[int64]{At: []int{5, 6}, Values: []int64{7, 8}, Condition: window.Greater})
			return err
		},
		"TestSome": func() error {
			_, err := window.TestSome(w, window.Elements[int64]{At: []int{5, 6}}, met[:0])
			return err
		},
		"ResetNotify": func() error { _, err := w.ResetNotify(1, 0); return err },
	}
}

// started returns a function that waits for a started transfer.
func started(ctx context.Context) func(r window.Request, err error) error {
	return func(r window.Request, err error) error {
		if err != nil {
			return err
		}
		return r.Wait(ctx)
	}
}

func TestHotPathsAllocateNothing(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	for _, c := range []testjob.Config{{Provider: "loop", Ranks: 2}, {Provider: "loop", Queued: true, Ranks: 2}, {Provider: "shm", Ranks: 2}} {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				w := allocate[int64](ctx, r, 64)
				f := allocate[float64](ctx, r, 1)
				a := allocate[[4]int64](ctx, r, 1)
				r.NoError(a.PutValue(ctx, r.Me, 0, [4]int64{0, 0, 0, 7}))
				r.NoError(w.Fence(ctx))
				for name, call := range hot(ctx, w, f, a, 1) {
					if r.Me == 0 {
						measure(t, name, call)
					}
				}
				r.NoError(w.Fence(ctx))
			})
		})
	}
}

func measure(t *testing.T, name string, call func() error) {
	var failed error
	got := math.Inf(1)
	for range 4 { // a wait on a busy machine parks, which allocates
		got = min(got, testing.AllocsPerRun(200, func() {
			if err := call(); err != nil {
				failed = err
			}
		}))
	}
	require.NoError(t, failed, name)
	require.Zero(t, got, "%s allocates", name)
}
