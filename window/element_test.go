package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// attempt allocates and frees a window of T, and returns Allocate's error.
func attempt[T any](ctx context.Context, r *testjob.Rank, n int, opts ...window.Option) error {
	w, err := window.Allocate[T](ctx, r.World, n, opts...)
	if err == nil {
		r.NoError(w.Free(ctx))
	}
	return err
}

func TestElementsWithPointersReturnErrType(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		r.ErrorIs(attempt[*int](ctx, r, 1), window.ErrType)
		r.ErrorIs(attempt[string](ctx, r, 1), window.ErrType)
		r.ErrorIs(attempt[[]byte](ctx, r, 1), window.ErrType)
		r.ErrorIs(attempt[map[int]int](ctx, r, 1), window.ErrType)
		r.ErrorIs(attempt[any](ctx, r, 1), window.ErrType)
		r.ErrorIs(attempt[error](ctx, r, 1), window.ErrType)
		r.ErrorIs(attempt[func()](ctx, r, 1), window.ErrType)
		r.ErrorIs(attempt[chan int](ctx, r, 1), window.ErrType)
		r.ErrorIs(attempt[struct {
			Good  int
			inner struct{ names [2]string }
		}](ctx, r, 1), window.ErrType)
		r.NoError(attempt[struct{ a, _ [2]struct{ b int8 } }](ctx, r, 1), "unexported fields are bytes like others")
	})
}

func TestElementsWithoutSizeReturnErrType(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		r.ErrorIs(attempt[struct{}](ctx, r, 1), window.ErrType)
		r.ErrorIs(attempt[[0]int](ctx, r, 1), window.ErrType)
		r.ErrorIs(attempt[[3]struct{}](ctx, r, 1), window.ErrType)
	})
}

func TestImpossibleSizesReturnErrRangeOrErrExhausted(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		r.ErrorIs(attempt[int64](ctx, r, -1), window.ErrRange)
		r.ErrorIs(attempt[int64](ctx, r, 1<<62), window.ErrRange)
		r.ErrorIs(attempt[int64](ctx, r, 1<<59-1), runtime.ErrExhausted)
		r.ErrorIs(attempt[int64](ctx, r, 1, window.WithSlots(-1)), window.ErrRange)
		r.ErrorIs(attempt[int64](ctx, r, 1, window.WithSlots(1<<40)), window.ErrRange)
		r.NoError(attempt[int64](ctx, r, 1, window.WithSlots(0)))
	})
}

func TestErrorsOfAllocateNameTheWindowAndItsType(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		err := attempt[*int](ctx, r, 1, window.WithName("table"))
		var op *window.OpError
		r.ErrorAs(err, &op)
		r.Equal("Allocate", op.Op)
		r.Equal("table", op.Window)
		r.Equal(r.Me, op.Rank)
		r.ErrorContains(err, "*int")
		r.ErrorContains(err, "use fixed-size values")
	})
}
