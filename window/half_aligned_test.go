package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

// TestAtomicsOfHalfAlignedElements has complex numbers begin at half of their size, which Go permits.
func TestAtomicsOfHalfAlignedElements(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		type variables struct {
			_ uint64
			Z [2]complex128
			_ uint32
			C [2]complex64
		}
		w := allocate[variables](ctx, r, 1)
		v := &w.Local()[0]
		z, err := window.Array(w, v.Z[:])
		r.NoError(err)
		refusesAtomics(ctx, r, z)
		c, err := window.Array(w, v.C[:])
		r.NoError(err)
		refusesAtomics(ctx, r, c)
		// All else works.
		r.NoError(c.PutValue(ctx, r.Right(), 1, 3i))
		r.NoError(w.Fence(ctx))
		r.Equal([2]complex64{0, 3i}, v.C)
		r.Zero(v.Z)
		r.NoError(w.Free(ctx))
	})
}

func refusesAtomics[T complex64 | complex128](ctx context.Context, r *testjob.Rank, w *window.Window[T]) {
	ones, sum := []T{1, 1}, window.Sum[T]()
	r.ErrorIs(window.Accumulate(ctx, w, r.Right(), 0, ones, sum), window.ErrAlignment)
	r.ErrorIs(window.GetAccumulate(ctx, w, r.Right(), 0, ones, ones, sum), window.ErrAlignment)
	_, err := window.FetchOp(ctx, w, r.Right(), 1, 1, sum)
	r.ErrorIs(err, window.ErrAlignment)
	var old T
	_, err = window.StartFetchOp(ctx, w, r.Right(), 1, 1, sum, &old)
	r.ErrorIs(err, window.ErrAlignment)
	r.NoError(w.Flush(ctx, r.Right()))
}
