package window_test

import (
	"context"
	"math"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// partAs returns a part of w, which holds any type.
func partAs[U, T any](r *testjob.Rank, w *window.Window[T], offset, n int) *window.Window[U] {
	part, err := window.Part[U](w, offset, n)
	r.NoError(err)
	return part
}

// sample is an element of 12 bytes that begins at multiples of 4.
type sample struct {
	At    int32
	Value [2]float32
}

func TestPartsHoldSeveralTypesInOneWindow(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		before := used(r.World)
		w := allocate[byte](ctx, r, 100)
		floats, counts, samples := partAs[float64](r, w, 0, 4), partAs[int64](r, w, 32, 1), partAs[sample](r, w, 40, 5)
		r.Same(floats, partAs[float64](r, w, 0, 4), "an equal call returns the same part")
		right, left := r.Right(), r.Left()
		for i := range 4 {
			r.NoError(floats.PutValue(ctx, right, i, float64(r.Me)+float64(i)/8))
		}
		for range 3 {
			_, err := window.FetchAdd(ctx, counts, right, 0, -2)
			r.NoError(err)
		}
		r.NoError(samples.Put(ctx, right, 3, []sample{{int32(r.Me), [2]float32{1, 2}}, {7, [2]float32{3, 4}}}))
		r.NoError(counts.Fence(ctx), "the fence of any part covers all")
		r.Equal([]float64{float64(left), float64(left) + 0.125, float64(left) + 0.25, float64(left) + 0.375}, floats.Local())
		r.Equal([]int64{-6}, counts.Local())
		r.Equal([]sample{{}, {}, {}, {int32(left), [2]float32{1, 2}}, {7, [2]float32{3, 4}}}, samples.Local())
		r.Equal(byte(0xfa), w.Local()[32], "the window has the same memory")
		r.EqualValues(left, partAs[int32](r, w, 76, 1).Local()[0])
		got := make([]sample, 2)
		r.NoError(samples.Get(ctx, right, 3, got))
		r.EqualValues(r.Me, got[0].At)
		inner := partAs[float32](r, samples, 4*12+4, 2)
		r.Equal([]float32{3, 4}, inner.Local(), "offsets of a part of a part count from that part")
		if shared, err := floats.Shared(ctx, right); err == nil {
			r.Len(shared, 4)
		}
		r.NoError(r.World.Barrier(ctx))
		r.NoError(w.Free(ctx))
		r.Equal(before, used(r.World))
	})
}

func TestPartsShareSlotsLocksAndFlushes(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int32](ctx, r, 16)
		words := partAs[uint64](r, w, 16, 2)
		right := r.Right()
		r.NoError(words.PutNotify(ctx, right, 1, []uint64{uint64(r.Me)}, window.Signal{Slot: 5, Value: 9}))
		_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{5}, Value: 9})
		r.NoError(err)
		r.EqualValues(r.Left(), words.Local()[1])
		_, err = window.FetchAdd(ctx, words, right, 0, 3)
		r.NoError(err)
		_, v, err := window.WaitUntil(ctx, words, window.Elements[uint64]{At: []int{0}, Value: 3})
		r.NoError(err)
		r.EqualValues(3, v)
		r.NoError(r.World.Barrier(ctx), "all have seen 3")
		q, err := words.StartPut(ctx, right, 0, []uint64{77})
		r.NoError(err)
		r.NoError(q.Wait(ctx))
		r.NoError(w.Flush(ctx, right), "the flush of the window covers its parts")
		r.NoError(r.World.Barrier(ctx))
		r.EqualValues(77, words.Local()[0])
		// A lock that a part took keeps the window's lock from other ranks.
		if r.Me == 0 {
			held, err := words.Lock(ctx, 1, window.Exclusive)
			r.NoError(err)
			r.NoError(r.World.Barrier(ctx))
			r.NoError(words.PutValue(ctx, 1, 0, 5))
			r.NoError(held.Unlock(ctx))
		} else {
			r.NoError(r.World.Barrier(ctx))
			held, err := w.Lock(ctx, 1, window.Shared)
			r.NoError(err)
			v, err := words.GetValue(ctx, 1, 0)
			r.NoError(err)
			r.EqualValues(5, v, "the holder's put is complete")
			r.NoError(held.Unlock(ctx))
		}
		r.NoError(w.Free(ctx))
	})
}

func TestPartsOfWindowsWhoseLengthsDiffer(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w, err := window.AllocateV[int32](ctx, r.World, 4*r.Me)
		r.NoError(err)
		last := r.N - 1
		part := partAs[int64](r, w, 8, 2*last-1)
		for to := range r.N {
			n := max(0, 2*to-1)
			r.Equal(n, part.Len(to))
			r.ErrorIs(part.PutValue(ctx, to, n, 1), window.ErrRange)
			if n > 0 && to == r.Right() {
				r.NoError(part.PutValue(ctx, to, n-1, int64(to)))
			}
		}
		r.NoError(w.Fence(ctx))
		if n := part.Len(r.Me); n > 0 {
			r.EqualValues(r.Me, part.Local()[n-1])
			r.EqualValues(r.Me, w.Local()[4*r.Me-2], "in the bytes of the window")
		}
		_, err = window.Part[int64](w, 8, 2*last)
		r.ErrorIs(err, window.ErrRange, "no rank has so many")
		r.NoError(w.Free(ctx))
	})
}

func TestPartReturnsTypedErrors(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int32](ctx, r, 10, window.WithName("mixed"))
		for _, c := range [][2]int{{-8, 1}, {0, -1}, {40, 1}, {0, 6}, {8, 5}, {48, 0}, {math.MaxInt - 7, 1}, {0, math.MaxInt}, {8, math.MaxInt}} {
			part, err := window.Part[int64](w, c[0], c[1])
			r.ErrorIs(err, window.ErrRange, "%v", c)
			r.Nil(part)
			var op *window.OpError
			r.ErrorAs(err, &op)
			r.Equal("Part", op.Op)
			r.Equal("mixed", op.Window)
		}
		_, err := window.Part[int64](w, 4, 1)
		r.ErrorIs(err, window.ErrAlignment)
		_, err = window.Part[string](w, 0, 1)
		r.ErrorIs(err, window.ErrType)
		var elsewhere int64
		_, err = window.Variable(w, &elsewhere)
		r.ErrorIs(err, window.ErrRange)
		empty := partAs[int64](r, w, 40, 0)
		r.Empty(empty.Local())
		part := partAs[int64](r, w, 8, 4)
		r.ErrorIs(part.PutValue(ctx, r.Right(), 4, 1), window.ErrRange)
		err = part.PutValue(ctx, r.Right(), -1, 1)
		r.ErrorContains(err, "mixed[8:]")
		r.NoError(part.PutValue(ctx, window.Null, 9, 1))
		r.ErrorIs(part.Free(ctx), window.ErrPart)
		r.NoError(part.PutValue(ctx, r.Right(), 3, 1), "the part is still there")
		r.NoError(w.Fence(ctx))
		r.NoError(w.Free(ctx))
		r.ErrorIs(part.PutValue(ctx, r.Right(), 3, 1), window.ErrFreed)
		_, err = part.GetValue(ctx, r.Right(), 3)
		r.ErrorIs(err, window.ErrFreed)
		_, err = window.Part[int64](w, 8, 4)
		r.ErrorIs(err, window.ErrFreed)
	})
}

func TestPointersLeadIntoParts(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[byte](ctx, r, 64)
		kept := partAs[window.Pointer[int32]](r, w, 0, 1)
		ints := partAs[int32](r, w, 32, 8)
		p, err := ints.Pointer(r.Me, 3)
		r.NoError(err)
		r.NoError(kept.PutValue(ctx, r.Right(), 0, p))
		r.NoError(w.Fence(ctx))
		found, target, index, err := window.Find(r.World, kept.Local()[0])
		r.NoError(err)
		r.Same(ints, found)
		r.Equal([2]int{r.Left(), 3}, [2]int{target, index})
		_, _, err = partAs[int32](r, w, 28, 8).Locate(p)
		r.ErrorIs(err, window.ErrPointer, "another part has other pointers")
		r.NoError(w.Free(ctx))
		_, _, _, err = window.Find(r.World, p)
		r.ErrorIs(err, window.ErrPointer)
	})
}

// variables are the static variables of a program, which all ranks have at the same place.
type variables struct {
	Ready uint8
	Count int64
	Grid  [50]float64
}

func TestVariablesAreReachedByTheirLocalAddress(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[variables](ctx, r, 1)
		v := &w.Local()[0]
		count, err := window.Variable(w, &v.Count)
		r.NoError(err)
		grid, err := window.Array(w, v.Grid[:])
		r.NoError(err)
		v.Grid[0] = float64(r.Me)
		r.NoError(grid.Put(ctx, r.Right(), 40, v.Grid[:1]))
		for to := range r.N {
			r.NoError(window.AtomicAdd(ctx, count, to, 0, 1))
		}
		r.NoError(w.Fence(ctx))
		r.EqualValues(r.N, v.Count)
		r.EqualValues(r.Left(), v.Grid[40])
		rest, err := window.Array(w, v.Grid[49:])
		r.NoError(err)
		r.Equal(1, rest.Len(r.Right()))
		_, err = window.Array(w, append(v.Grid[49:], 1))
		r.ErrorIs(err, window.ErrRange, "append moved the slice")
		r.NoError(w.Free(ctx))
	})
}

// Goroutines that make the same part, while the window ends, get one part or ErrFreed.
func TestPartsMadeDuringFreeEndWithIt(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		for range 50 {
			w := allocate[int64](ctx, r, 8)
			var makers errgroup.Group
			for i := range 4 {
				makers.Go(func() error {
					for n := 0; ; n++ {
						part, err := window.Part[int32](w, 8*(n%8), 1+i%2)
						if err == nil {
							_, err = part.Pointer(r.Me, 0)
						}
						if err != nil {
							return err
						}
					}
				})
			}
			r.NoError(w.Free(ctx))
			r.ErrorIs(makers.Wait(), window.ErrFreed)
		}
	}, runtime.WithHeap(1<<20))
}
