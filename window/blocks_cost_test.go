package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/window"
)

// TestShortBlocksOverTCPAreOneRequest counts the requests of columns, listed elements and faces of an
// array of 32*32*32 elements.
func TestShortBlocksOverTCPAreOneRequest(t *testing.T) {
	const side = 32
	comparePostsOverTCP(t, side*side*side, func(ctx context.Context, _ *testjob.Rank, w *window.Window[float64]) []postsOfCall {
		mem := make([]float64, side*side*side)
		column := window.Strided(side*side, 1, side)
		face := window.Box([]int{side, side, side}, []int{0, 3, 0}, []int{side, 1, side})
		var listed []int
		for i := range 100 {
			listed = append(listed, i*i)
		}
		places := window.Indexed(listed, 1)
		long := window.Strided(3, 5<<10/8, 6<<10/8)
		return []postsOfCall{
			{"put a column", driver.OpWriteBlocks, 1, func() error { return w.PutBlocks(ctx, 1, 0, column, mem, column) }},
			{"put a face", driver.OpWriteBlocks, 1, func() error { return w.PutBlocks(ctx, 1, 0, face, mem, window.Blocks{}) }},
			{"put listed", driver.OpWriteBlocks, 1, func() error { return w.PutBlocks(ctx, 1, 0, places, mem, window.Blocks{}) }},
			{"put into one block", driver.OpWrite, 1, func() error { return w.PutBlocks(ctx, 1, 0, window.Strided(1, 400, 0), mem, window.Blocks{}) }},
			{"put long blocks", driver.OpWrite, 3, func() error { return w.PutBlocks(ctx, 1, 0, long, mem, window.Blocks{}) }},
			{"start a put", driver.OpWriteBlocks, 1, func() error { return started(ctx)(w.StartPutBlocks(ctx, 1, 0, face, mem, face)) }},
			{"get a column", driver.OpReadBlocks, 1, func() error { return w.GetBlocks(ctx, 1, 0, column, mem, column) }},
			{"get a face", driver.OpReadBlocks, 1, func() error { return w.GetBlocks(ctx, 1, 0, face, mem, window.Blocks{}) }},
			{"get listed", driver.OpReadBlocks, 1, func() error { return w.GetBlocks(ctx, 1, 0, places, mem, places) }},
			{"start a get", driver.OpReadBlocks, 1, func() error { return started(ctx)(w.StartGetBlocks(ctx, 1, 0, face, mem, face)) }},
		}
	})
}
