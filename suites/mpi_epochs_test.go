package suites

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestColumnsInEpochs(t *testing.T) { everywhere(t, 3, columnsInEpochs) }

// columnsInEpochs: rank 0 puts a column of its matrix into a column of each other rank's, and adds
// another one. Both are in an epoch of all targets.
func columnsInEpochs(ctx context.Context, r *testjob.Rank) {
	const rows, columns = 7, 5
	w := allocate[int64](ctx, r, rows*columns)
	column := window.Strided(rows, 1, columns)
	if r.Me == 0 {
		src := filled(rows*columns, 100)
		access, err := w.Start(ctx, []int{2, 1})
		r.NoError(err)
		for target := 1; target < r.N; target++ {
			r.NoError(w.PutBlocks(ctx, target, 1, column, src[2:], column))
			r.NoError(window.AccumulateBlocks(ctx, w, target, 3, column, src, column, window.Sum[int64]()))
			r.NoError(window.AccumulateBlocks(ctx, w, target, 3, column, src, column, window.Sum[int64]()))
		}
		r.NoError(access.Complete(ctx))
	} else {
		exposure, err := w.Post(ctx, []int{0})
		r.NoError(err)
		r.NoError(exposure.Wait(ctx))
		for row := range rows {
			at := int64(100 + row*columns)
			r.Equal([]int64{0, at + 2, 0, 2 * at, 0}, w.Local()[row*columns:(row+1)*columns])
		}
	}
	r.NoError(w.Fence(ctx))
}

func TestEmptyEpochs(t *testing.T) { everywhere(t, 2, emptyEpochs) }

// emptyEpochs: epochs without peers end at once, and a window without elements has epochs.
func emptyEpochs(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, 0)
	for range 3 {
		exposure, err := w.Post(ctx, nil)
		r.NoError(err)
		access, err := w.Start(ctx, nil)
		r.NoError(err)
		r.NoError(access.Complete(ctx))
		r.NoError(exposure.Wait(ctx))
	}
	exposure, err := w.Post(ctx, []int{r.Left()})
	r.NoError(err)
	access, err := w.Start(ctx, []int{r.Right()})
	r.NoError(err)
	r.NoError(w.Put(ctx, r.Right(), 0, nil))
	r.NoError(access.Complete(ctx))
	r.NoError(exposure.Wait(ctx))
	r.NoError(w.Fence(ctx))
}

func TestEpochsInTurn(t *testing.T) { everywhere(t, 4, epochsInTurn) }

// epochsInTurn: rank 0 has an epoch with each other rank, the last one first. All others post at once.
func epochsInTurn(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, 1)
	for round := int64(1); round <= 10; round++ {
		if r.Me > 0 {
			exposure, err := w.Post(ctx, []int{0})
			r.NoError(err)
			r.NoError(exposure.Wait(ctx))
			r.Equal(round, w.Local()[0])
			continue
		}
		for target := r.N - 1; target > 0; target-- {
			access, err := w.Start(ctx, []int{target})
			r.NoError(err)
			r.NoError(w.PutValue(ctx, target, 0, round))
			r.NoError(access.Complete(ctx))
		}
	}
	r.NoError(w.Fence(ctx))
}

func TestTestedEpoch(t *testing.T) { everywhere(t, 2, testedEpoch) }

// testedEpoch: the target polls for the end of an epoch, in which the origin puts and gets. Lengths differ.
func testedEpoch(ctx context.Context, r *testjob.Rank) {
	w, err := window.AllocateV[int64](ctx, r.World, 100*r.Me)
	r.NoError(err)
	if r.Me == 1 {
		copy(w.Local(), filled(50, 1000))
		exposure, err := w.Post(ctx, []int{0})
		r.NoError(err)
		for ended := false; !ended; {
			ended, err = exposure.Test()
			r.NoError(err)
			r.NoError(context.Cause(ctx))
		}
		r.Equal(filled(50, 7), w.Local()[50:])
	} else {
		access, err := w.Start(ctx, []int{1})
		r.NoError(err)
		got := make([]int64, 50)
		r.NoError(w.Put(ctx, 1, 50, filled(50, 7)))
		r.NoError(w.Get(ctx, 1, 0, got))
		r.Equal(filled(50, 1000), got)
		r.NoError(access.Complete(ctx))
	}
	r.NoError(w.Fence(ctx))
}
