package window_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

// TestBlocksGoWhereTheModelPutsThem compares puts and gets of random blocks with loops over
// single elements.
func TestBlocksGoWhereTheModelPutsThem(t *testing.T) { testjob.All(t, 1, moveRandomBlocks) }

// TestBlocksByRequestsForEachGoWhereTheModelPutsThem is the same on plain verbs.
func TestBlocksByRequestsForEachGoWhereTheModelPutsThem(t *testing.T) {
	testjob.Config{Provider: "loop", Queued: true, Ranks: 3}.Run(t, moveRandomBlocks, plain())
}

func moveRandomBlocks(ctx context.Context, r *testjob.Rank) {
	moveBlocks[byte](ctx, r)
	moveBlocks[uint32](ctx, r)
	moveBlocks[float64](ctx, r)
	moveBlocks[[3]uint16](ctx, r)
}

// someBlocks are blocks beside the places of their elements.
type someBlocks struct {
	window.Blocks
	places []int
}

// blocksOf draws blocks within the first elements of n.
func blocksOf(rnd *rand.Rand, n int) (b someBlocks) {
	add := func(at, block int) {
		for i := range block {
			b.places = append(b.places, at+i)
		}
	}
	switch rnd.IntN(4) {
	case 0:
		block := 1 + rnd.IntN(3)
		stride := block + rnd.IntN(4)
		count := rnd.IntN(n / stride)
		b.Blocks = window.Strided(count, block, stride)
		for i := range count {
			add(i*stride, block)
		}
	case 1:
		block := 1 + rnd.IntN(3)
		var offsets []int
		for _, i := range rnd.Perm(n / block)[:rnd.IntN(n/block)] {
			offsets = append(offsets, i*block)
			add(i*block, block)
		}
		b.Blocks = window.Indexed(offsets, block)
	case 2:
		var offsets, lengths []int
		for at := rnd.IntN(4); at < n; at += 1 + rnd.IntN(6) {
			length := rnd.IntN(min(9, n-at))
			offsets, lengths = append(offsets, at), append(lengths, length)
			add(at, length)
			at += length
		}
		b.Blocks = window.Ragged(offsets, lengths)
	case 3:
		x, y := 2+rnd.IntN(9), 2+rnd.IntN(9)
		shape := []int{n / x / y, y, x}
		var start, size [3]int
		for i := range shape {
			start[i] = rnd.IntN(shape[i])
			size[i] = 1 + rnd.IntN(shape[i]-start[i])
		}
		b.Blocks = window.Box(shape, start[:], size[:])
		for i := range size[0] {
			for j := range size[1] {
				add((start[0]+i)*x*y+(start[1]+j)*x+start[2], size[2])
			}
		}
	}
	return b
}

// blocksOfAsMany draws blocks of count elements within the first n.
func blocksOfAsMany(rnd *rand.Rand, n, count int) (b someBlocks) {
	block := 1
	if size := 2 + rnd.IntN(2); count%size == 0 {
		block = size
	}
	var offsets, lengths []int
	add := func(at, length int) {
		offsets, lengths = append(offsets, at), append(lengths, length)
		for i := range length {
			b.places = append(b.places, at+i)
		}
	}
	switch rnd.IntN(3) {
	case 0:
		stride := block
		if count > 0 {
			stride += rnd.IntN(n*block/count - block + 1)
		}
		for i := range count / block {
			add(i*stride, block)
		}
		b.Blocks = window.Strided(count/block, block, stride)
	case 1:
		for _, i := range rnd.Perm(n / block)[:count/block] {
			add(i*block, block)
		}
		b.Blocks = window.Indexed(offsets, block)
	case 2:
		for at := 0; len(b.places) < count; at = offsets[len(offsets)-1] + lengths[len(lengths)-1] {
			left := count - len(b.places)
			add(at+rnd.IntN(min(5, n-at-left+1)), rnd.IntN(min(9, left+1)))
		}
		b.Blocks = window.Ragged(offsets, lengths)
	}
	return b
}

// moveBlocks puts and gets blocks at the right neighbor, whose elements this rank alone changes.
func moveBlocks[T comparable](ctx context.Context, r *testjob.Rank) {
	const elements, rounds = 1500, 12
	w := allocate[T](ctx, r, elements)
	rnd := rand.New(rand.NewPCG(uint64(r.Me), 36))
	model, mine, all := make([]T, elements), make([]T, elements), make([]T, elements)
	signals := uint64(0)
	for round := range rounds {
		fillRandomly(rnd, mine)
		index := rnd.IntN(100)
		there, here := blocksOf(rnd, elements-index), someBlocks{}
		if rnd.IntN(2) == 0 {
			if here = blocksOfAsMany(rnd, elements-index, len(there.places)); rnd.IntN(2) == 0 {
				there, here = here, there
			}
		} else {
			for i := range there.places {
				here.places = append(here.places, i)
			}
		}
		if round%2 == 0 {
			want := slices.Clone(mine)
			for i, at := range here.places {
				want[at] = model[index+there.places[i]]
			}
			r.NoError(getSomeBlocks(ctx, w, r.Right(), index, round, there.Blocks, mine, here.Blocks))
			r.True(slices.Equal(want, mine), "round %d: blocks changed other elements, or have other content", round)
			continue
		}
		for i, at := range there.places {
			model[index+at] = mine[here.places[i]]
		}
		if round%3 == 0 {
			signals++
		}
		r.NoError(putSomeBlocks(ctx, w, r.Right(), index, round, there.Blocks, mine, here.Blocks))
		clear(mine)
		r.NoError(w.Flush(ctx, r.Right()))
		r.NoError(w.Get(ctx, r.Right(), 0, all))
		r.True(slices.Equal(model, all), "round %d: blocks changed other elements, or have other content", round)
	}
	_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{1}, Condition: window.Equal, Value: signals})
	r.NoError(err)
	r.NoError(w.Free(ctx))
}

func putSomeBlocks[T any](ctx context.Context, w *window.Window[T], target, index, round int, to window.Blocks, src []T, from window.Blocks) error {
	switch round % 3 {
	case 0:
		signal := window.Signal{Slot: 1, Value: 1, Add: true}
		if round%9 == 0 {
			return started(ctx)(w.StartPutBlocksNotify(ctx, target, index, to, src, from, signal))
		}
		return w.PutBlocksNotify(ctx, target, index, to, src, from, signal)
	case 1:
		return started(ctx)(w.StartPutBlocks(ctx, target, index, to, src, from))
	}
	return w.PutBlocks(ctx, target, index, to, src, from)
}

func getSomeBlocks[T any](ctx context.Context, w *window.Window[T], target, index, round int, from window.Blocks, dst []T, into window.Blocks) error {
	if round%9 == 0 {
		return started(ctx)(w.StartGetBlocks(ctx, target, index, from, dst, into))
	}
	return w.GetBlocks(ctx, target, index, from, dst, into)
}

func fillRandomly[T any](rnd *rand.Rand, to []T) {
	for i := range to {
		switch p := any(&to[i]).(type) {
		case *byte:
			*p = byte(rnd.Uint32())
		case *uint32:
			*p = rnd.Uint32()
		case *float64:
			*p = rnd.Float64()
		case *[3]uint16:
			*p = [3]uint16{uint16(rnd.Uint32()), uint16(rnd.Uint32()), uint16(rnd.Uint32())}
		}
	}
}

// TestBlocksOfManyRequestsArriveWhole moves more than one request takes, and blocks larger than that.
func TestBlocksOfManyRequestsArriveWhole(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		const n = 1 << 17
		w := allocate[uint64](ctx, r, n)
		src, dst := make([]uint64, n), make([]uint64, n)
		for i := range src {
			src[i] = uint64(r.Me<<32 + i)
		}
		for _, b := range []window.Blocks{window.Strided(3, n/4, n/3), window.Strided(n/16, 1, 16),
			window.Box([]int{32, 64, 64}, []int{0, 1, 0}, []int{32, 62, 1}), {}} {
			r.NoError(w.PutBlocksNotify(ctx, r.Right(), 0, b, src, b, window.Signal{Slot: 0, Value: 1}))
			_, _, err := w.WaitNotify(ctx, window.Until{Slots: []int{0}, Condition: window.Equal, Value: 1})
			r.NoError(err)
			clear(dst)
			r.NoError(w.GetBlocks(ctx, r.Right(), 0, b, dst, b))
			got := make([]uint64, n)
			r.NoError(w.Get(ctx, r.Right(), 0, got))
			r.Equal(got, dst)
			clear(got)
			r.NoError(w.Put(ctx, r.Right(), 0, got))
			_, err = w.ResetNotify(0, 0)
			r.NoError(err)
			r.NoError(w.Fence(ctx))
		}
		r.NoError(w.Free(ctx))
	})
}

// TestBlocksBeyondBoundsFail checks that a refused call changes nothing.
func TestBlocksBeyondBoundsFail(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int32](ctx, r, 100)
		buf := make([]int32, 50)
		one, some := window.Strided(1, 1, 1), window.Strided(10, 2, 5)
		for name, c := range map[string]struct {
			index       int
			there, here window.Blocks
		}{
			"below 0":              {-1, one, one},
			"behind the end":       {100, one, one},
			"an end behind it":     {54, some, some},
			"a start below 0":      {8, window.Strided(10, 2, -1), some},
			"numbers that differ":  {0, one, some},
			"more than here":       {0, window.Strided(51, 1, 1), window.Blocks{}},
			"here behind the end":  {0, some, window.Strided(10, 2, 6)},
			"here below 0":         {0, some, window.Strided(10, 2, -1)},
			"an index far beyond":  {math.MaxInt, some, some},
			"an index far below":   {math.MinInt, some, some},
			"a box beyond":         {0, window.Box([]int{11, 10}, []int{0, 0}, []int{11, 1}), window.Blocks{}},
			"no box":               {0, window.Box([]int{10, 10}, []int{9, 0}, []int{2, 1}), window.Blocks{}},
			"an offset below 0":    {5, window.Indexed([]int{-1}, 1), window.Blocks{}},
			"an offset beyond":     {5, window.Indexed([]int{95}, 1), window.Blocks{}},
			"lists that differ":    {5, window.Ragged([]int{95}, nil), window.Blocks{}},
			"an overflowing count": {0, window.Strided(math.MaxInt, math.MaxInt, 3), window.Blocks{}},
		} {
			ends := []error{
				w.PutBlocks(ctx, r.Right(), c.index, c.there, buf, c.here),
				w.GetBlocks(ctx, r.Right(), c.index, c.there, buf, c.here),
				w.PutBlocksNotify(ctx, r.Right(), c.index, c.there, buf, c.here, window.Signal{Value: 1}),
				started(ctx)(w.StartPutBlocks(ctx, r.Right(), c.index, c.there, buf, c.here)),
				started(ctx)(w.StartGetBlocks(ctx, r.Right(), c.index, c.there, buf, c.here)),
			}
			for _, err := range ends {
				var op *window.OpError
				r.ErrorIs(err, window.ErrRange, name)
				r.ErrorAs(err, &op, name)
			}
			r.NoError(w.PutBlocks(ctx, window.Null, c.index, c.there, buf, c.here))
		}
		r.ErrorIs(w.PutBlocks(ctx, 99, 0, one, buf, one), window.ErrRange)
		r.ErrorIs(w.PutBlocksNotify(ctx, r.Right(), 0, one, buf, one, window.Signal{Slot: 1 << 20}), window.ErrRange)
		r.NoError(w.PutBlocks(ctx, r.Right(), 100, window.Strided(0, 1, 1), nil, window.Blocks{}))
		r.NoError(w.Fence(ctx))
		r.Equal(make([]int32, 100), w.Local())
		r.NoError(w.Free(ctx))
		r.ErrorIs(w.PutBlocks(ctx, r.Right(), 0, one, buf, one), window.ErrFreed)
	})
}
