package window_test

import (
	"context"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/window"
)

// TestShortAccumulatesOverTCPAreOneRequest counts the requests of accumulates of a column, of listed
// elements, and of blocks that are long.
func TestShortAccumulatesOverTCPAreOneRequest(t *testing.T) {
	const n, side = 16 << 10, 128
	comparePostsOverTCP(t, n, func(ctx context.Context, _ *testjob.Rank, w *window.Window[float64]) []postsOfCall {
		src, old := make([]float64, n), make([]float64, n)
		column, more := window.Strided(side, 1, side), window.Strided(4<<10, 1, 2)
		places, long := window.Indexed([]int{0, 7, 7, 100, 3, 11, 50}, 1), window.Strided(3, 5<<10/8, 6<<10/8)
		sum, none := window.Sum[float64](), window.Blocks{}
		row := func(name string, requests uint64, to, from window.Blocks) []postsOfCall {
			return []postsOfCall{
				{name, driver.OpAccumulate, requests, func() error { return window.AccumulateBlocks(ctx, w, 1, 0, to, src, from, sum) }},
				{"start " + name, driver.OpAccumulate, requests, func() error {
					return started(ctx)(window.StartAccumulateBlocks(ctx, w, 1, 0, to, src, from, sum))
				}},
			}
		}
		get := func(name string, to, from window.Blocks) []postsOfCall {
			return []postsOfCall{
				{"get " + name, driver.OpAccumulate, 1, func() error {
					return window.GetAccumulateBlocks(ctx, w, 1, 0, to, src, old, from, sum)
				}},
				{"start to get " + name, driver.OpAccumulate, 1, func() error {
					return started(ctx)(window.StartGetAccumulateBlocks(ctx, w, 1, 0, to, src, old, from, sum))
				}},
				{"load " + name, driver.OpAccumulate, 1, func() error {
					return window.GetAccumulateBlocks(ctx, w, 1, 0, to, nil, old, from, window.NoOp[float64]())
				}},
			}
		}
		return slices.Concat(row("a column", 1, column, column), row("listed", 1, places, none), row("one block", 1, window.Strided(1, 100, 0), none),
			row("32 KiB", 3, more, none), row("long blocks", 3, long, long), get("a column", column, column), get("listed", places, none),
			get("32 KiB", more, none))
	})
}

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
