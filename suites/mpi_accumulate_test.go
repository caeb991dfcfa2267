package suites

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestAccumulateBlocks(t *testing.T) { everywhere(t, 3, accumulateBlocks) }

// accumulateBlocks: all ranks add every second number of a slice to every third element of rank 0.
func accumulateBlocks(ctx context.Context, r *testjob.Rank) {
	const n = 40
	w := allocate[int64](ctx, r, 3*n)
	src := filled(2*n, int64(1000*r.Me))
	r.NoError(window.AccumulateBlocks(ctx, w, 0, 0, window.Strided(n, 1, 3), src, window.Strided(n, 1, 2), window.Sum[int64]()))
	for i := range src {
		src[i] = -1 // the call has returned: the slice is free
	}
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		for i, v := range w.Local() {
			want := int64(0)
			if i%3 == 0 {
				want = 3000 + 3*int64(2*i/3)
			}
			r.Equal(want, v, "element %d", i)
		}
	}
	r.NoError(w.Fence(ctx))
}

func TestAccumulateOrder(t *testing.T) { everywhere(t, 2, accumulateOrder) }

// accumulateOrder: accumulates of different operators on the same elements, without a flush between.
func accumulateOrder(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, 8)
	for round := range int64(20) {
		r.NoError(window.Accumulate(ctx, w, r.Right(), 0, filled(8, round), window.Replace[int64]()))
		r.NoError(window.Accumulate(ctx, w, r.Right(), 2, filled(4, 1), window.Sum[int64]()))
		r.NoError(window.Accumulate(ctx, w, r.Right(), 0, []int64{3, 3}, window.Prod[int64]()))
		old := make([]int64, 8)
		r.NoError(window.GetAccumulate(ctx, w, r.Right(), 0, filled(8, -5), old, window.Min[int64]()))
		r.Equal([]int64{3 * round, 3 * (round + 1), round + 3, round + 5, round + 7, round + 9, round + 6, round + 7}, old)
	}
	r.NoError(w.Fence(ctx))
}

func TestBoxes(t *testing.T) { everywhere(t, 2, boxes) }

// boxes: both ranks add to the inner part of rank 0's matrix of floats, and rank 1 reads it back.
func boxes(ctx context.Context, r *testjob.Rank) {
	const rows, columns = 9, 12
	w := allocate[float64](ctx, r, rows*columns)
	inner := window.Box([]int{rows, columns}, []int{2, 3}, []int{4, 5})
	src := make([]float64, rows*columns)
	for i := range src {
		src[i] = float64(i) / 4
	}
	r.NoError(window.AccumulateBlocks(ctx, w, 0, 0, inner, src, inner, window.Sum[float64]()))
	r.NoError(w.Fence(ctx))
	if r.Me == 1 {
		got := make([]float64, rows*columns)
		r.NoError(w.Get(ctx, 0, 0, got))
		for i, v := range got {
			row, column := i/columns, i%columns
			want := 0.0
			if row >= 2 && row < 6 && column >= 3 && column < 8 {
				want = float64(i) / 2
			}
			r.Equal(want, v, "row %d, column %d", row, column)
		}
	}
	r.NoError(w.Fence(ctx))
}

func TestIndexedFetch(t *testing.T) { everywhere(t, 3, indexedFetch) }

// indexedFetch: each rank adds to its own indices of rank 0 and reads the earlier values, several times.
func indexedFetch(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, 64)
	mine := window.Ragged([]int{r.Me, 20 + 2*r.Me, 40 + 5*r.Me}, []int{1, 2, 4})
	for round := range int64(5) {
		old := make([]int64, 7)
		r.NoError(window.GetAccumulateBlocks(ctx, w, 0, 0, mine, filled(7, 1), old, window.Blocks{}, window.Sum[int64]()))
		for i, v := range old {
			r.Equal(round*int64(i+1), v)
		}
	}
	r.NoError(w.Fence(ctx))
}

func TestTreeCounter(t *testing.T) { everywhere(t, 4, treeCounter) }

// treeCounter: a shared counter is the sum of a tree's nodes at rank 0. A rank adds 1 to the nodes on the path
// of its leaf, and reads their siblings, under the lock: each value comes once.
func treeCounter(ctx context.Context, r *testjob.Rank) {
	const each = 6
	w := allocate[int64](ctx, r, 8) // nodes 1..7, leaf of rank i is 4+i
	seen := allocate[int64](ctx, r, 4*each)
	leaf := 4 + r.Me
	path := window.Indexed([]int{leaf, leaf / 2, 1}, 1)
	for range each {
		held, err := w.Lock(ctx, 0, window.Exclusive)
		r.NoError(err)
		old := make([]int64, 3)
		r.NoError(window.GetAccumulateBlocks(ctx, w, 0, 0, path, []int64{1, 1, 1}, old, window.Blocks{}, window.Sum[int64]()))
		siblings := make([]int64, 2)
		r.NoError(w.GetBlocks(ctx, 0, 0, window.Indexed([]int{leaf ^ 1, leaf/2 ^ 1}, 1), siblings, window.Blocks{}))
		r.Equal(old[2], old[0]+siblings[0]+siblings[1])
		r.NoError(held.Unlock(ctx))
		r.NoError(window.AtomicAdd(ctx, seen, 0, int(old[2]), 1))
	}
	r.NoError(seen.Fence(ctx))
	if r.Me == 0 {
		for value, times := range seen.Local() {
			r.EqualValues(1, times, "value %d", value)
		}
	}
	r.NoError(seen.Fence(ctx))
}

func TestNothing(t *testing.T) { everywhere(t, 2, nothing) }

// nothing: every call takes a null target and an empty slice, and changes nothing.
func nothing(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, 4)
	one, none := []int64{9}, []int64{}
	sum := window.Sum[int64]()
	for target, src := range map[int][]int64{window.Null: one, r.Right(): none} {
		r.NoError(w.Put(ctx, target, 0, src))
		r.NoError(w.Get(ctx, target, 0, src))
		r.NoError(window.Accumulate(ctx, w, target, 0, src, sum))
		r.NoError(window.GetAccumulate(ctx, w, target, 0, src, src, sum))
		r.NoError(window.AccumulateBlocks(ctx, w, target, 0, window.Blocks{}, src, window.Blocks{}, sum))
		started := make([]window.Request, 4)
		var err error
		started[0], err = w.StartPut(ctx, target, 0, src)
		r.NoError(err)
		started[1], err = w.StartGet(ctx, target, 0, src)
		r.NoError(err)
		started[2], err = window.StartAccumulate(ctx, w, target, 0, src, sum)
		r.NoError(err)
		started[3], err = window.StartGetAccumulate(ctx, w, target, 0, src, src, sum)
		r.NoError(err)
		r.NoError(window.WaitAll(ctx, started))
	}
	_, err := window.FetchAdd(ctx, w, window.Null, 0, 1)
	r.NoError(err)
	r.NoError(w.Fence(ctx))
	r.Equal(make([]int64, 4), w.Local())
	r.Equal([]int64{9}, one)
	r.NoError(w.Fence(ctx))
}

func TestAnyOfSeveral(t *testing.T) { everywhere(t, 4, anyOfSeveral) }

// anyOfSeveral: rank 0 starts a get of each rank, and handles each as it comes.
func anyOfSeveral(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, 1000)
	copy(w.Local(), filled(1000, int64(10_000*r.Me)))
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		var under []window.Request
		var from []int
		bufs := make([][]int64, r.N)
		for target := range r.N {
			bufs[target] = make([]int64, 1000)
			q, err := w.StartGet(ctx, target, 0, bufs[target])
			r.NoError(err)
			under, from = append(under, q), append(from, target)
		}
		for len(under) > 0 {
			i, err := window.WaitAny(ctx, under)
			r.NoError(err)
			r.Equal(filled(1000, int64(10_000*from[i])), bufs[from[i]])
			under, from = append(under[:i], under[i+1:]...), append(from[:i], from[i+1:]...)
		}
	}
	r.NoError(w.Fence(ctx))
}
