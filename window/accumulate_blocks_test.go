package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestAccumulateBlocksUpdatesTheBlocksOnly(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		const rows, columns = 6, 8
		w := allocate[int64](ctx, r, rows*columns)
		box := window.Box([]int{rows, columns}, []int{1, 2}, []int{4, 3})
		operands := make([]int64, 12)
		for i := range operands {
			operands[i] = int64(i + 1)
		}
		r.NoError(window.AccumulateBlocks(ctx, w, r.Right(), 0, box, operands, window.Blocks{}, window.Sum[int64]()))
		r.NoError(w.Fence(ctx))
		// Every rank multiplies the elements of its left neighbor's box, and reads what they were.
		old := make([]int64, 12)
		r.NoError(window.GetAccumulateBlocks(ctx, w, r.Left(), 0, box, operands, old, window.Blocks{}, window.Prod[int64]()))
		r.Equal(operands, old)
		r.NoError(w.Fence(ctx))
		i := int64(0)
		for at, v := range w.Local() {
			row, column := at/columns, at%columns
			if row < 1 || row > 4 || column < 2 || column > 4 {
				r.Zero(v, "element %d", at)
				continue
			}
			i++
			r.Equal(i*i, v, "element %d", at)
		}
		r.NoError(w.Fence(ctx))
		// A column of operands, and a block that is listed twice.
		r.NoError(window.AccumulateBlocks(ctx, w, r.Right(), 0, window.Indexed([]int{0, 40, 0}, 1), operands, window.Strided(3, 1, 4), window.Sum[int64]()))
		r.NoError(w.Fence(ctx))
		r.EqualValues(1+9, w.Local()[0])
		r.EqualValues(5, w.Local()[40])
		seen := make([]int64, 2)
		r.NoError(window.GetAccumulateBlocks(ctx, w, r.Right(), 0, window.Indexed([]int{40, 0}, 1), nil, seen, window.Blocks{}, window.NoOp[int64]()))
		r.Equal([]int64{5, 10}, seen)
		r.NoError(w.Fence(ctx))
	})
}

func TestAccumulateBlocksTakesOperatorsOfTheProgram(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		op := addTwins(ctx, r)
		w := allocate[twin](ctx, r, 8)
		column, operands := window.Strided(3, 1, 3), []twin{{A: 1, B: 1}, {A: 2, B: 2}, {A: 3, B: 3}}
		for range 2 {
			r.NoError(window.AccumulateBlocks(ctx, w, r.Right(), 1, column, operands, window.Blocks{}, op))
		}
		old := make([]twin, 3)
		r.NoError(window.GetAccumulateBlocks(ctx, w, r.Right(), 1, column, nil, old, window.Blocks{}, window.NoOp[twin]()))
		r.Equal([]twin{{A: 2, B: 2}, {A: 4, B: 4}, {A: 6, B: 6}}, old)
		r.NoError(w.Fence(ctx))
		r.Equal([]twin{1: old[0], 4: old[1], 7: old[2]}, w.Local())
		words, err := window.RegisterOp(ctx, r.World, "last", func(_, operand int16) int16 { return operand })
		r.NoError(err)
		w16 := allocate[int16](ctx, r, 8)
		r.NoError(window.AccumulateBlocks(ctx, w16, r.Me, 1, column, []int16{1, 2, 3}, window.Blocks{}, words))
		r.Equal([]int16{1: 1, 4: 2, 7: 3}, w16.Local())
		r.NoError(w.Fence(ctx))
	})
}

func TestAccumulateBlocksRefusesWrongArguments(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int32](ctx, r, 10)
		ones := []int32{1, 1, 1}
		sum := window.Sum[int32]()
		for _, to := range []window.Blocks{window.Strided(3, 1, 5), window.Indexed([]int{0, 4, 10}, 1), window.Strided(-1, 1, 1)} {
			r.ErrorIs(window.AccumulateBlocks(ctx, w, r.Me, 0, to, ones, window.Blocks{}, sum), window.ErrRange)
		}
		r.ErrorIs(window.AccumulateBlocks(ctx, w, r.Me, 0, window.Blocks{}, ones, window.Blocks{}, window.Op[int32]{}), window.ErrOp)
		r.ErrorIs(window.GetAccumulateBlocks(ctx, w, r.Me, 0, window.Blocks{}, ones, ones[:2], window.Blocks{}, sum), window.ErrRange)
		r.NoError(window.AccumulateBlocks(ctx, w, window.Null, 0, window.Strided(3, 1, 5), ones, window.Blocks{}, sum))
		r.Equal(make([]int32, 10), w.Local())
		r.NoError(w.Fence(ctx))
	})
}
