package blocks

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawn is a layout beside the places of its units in order.
type drawn struct {
	Layout
	places []int
}

func draw(t *rapid.T, name string) (d drawn) {
	small := rapid.IntRange(0, 5)
	switch rapid.IntRange(0, 3).Draw(t, name) {
	case 0:
		count, block, stride := small.Draw(t, "count"), small.Draw(t, "block"), rapid.IntRange(-3, 8).Draw(t, "stride")
		d.Layout = Strided(count, block, stride)
		for i := range count {
			d.add(i*stride, block)
		}
	case 1:
		offsets, block := rapid.SliceOfN(rapid.IntRange(0, 40), 0, 8).Draw(t, "offsets"), small.Draw(t, "block")
		d.Layout = Indexed(offsets, block)
		for _, at := range offsets {
			d.add(at, block)
		}
	case 2:
		offsets := rapid.SliceOfN(rapid.IntRange(0, 40), 0, 8).Draw(t, "offsets")
		lengths := rapid.SliceOfN(small, len(offsets), len(offsets)).Draw(t, "lengths")
		d.Layout = Ragged(offsets, lengths)
		for i, at := range offsets {
			d.add(at, lengths[i])
		}
	case 3:
		d.box(t, rapid.IntRange(1, MaxDims).Draw(t, "dims"))
	}
	return d
}

func (d *drawn) add(at, n int) {
	for i := range n {
		d.places = append(d.places, at+i)
	}
}

func (d *drawn) box(t *rapid.T, dims int) {
	shape, start, size := make([]int, dims), make([]int, dims), make([]int, dims)
	for i := range dims {
		shape[i] = rapid.IntRange(1, 4).Draw(t, "shape")
		start[i] = rapid.IntRange(0, shape[i]).Draw(t, "start")
		size[i] = rapid.IntRange(0, shape[i]-start[i]).Draw(t, "size")
	}
	d.Layout = Box(shape, start, size)
	var walk func(i, at int)
	walk = func(i, at int) {
		if i == dims {
			d.places = append(d.places, at)
			return
		}
		for j := range size[i] {
			walk(i+1, at*shape[i]+start[i]+j)
		}
	}
	walk(0, 0)
}

func (d *drawn) check(t *rapid.T) (from int) {
	size, from, to, err := d.Measure()
	require.NoError(t, err)
	require.Len(t, d.places, size)
	for _, at := range d.places {
		require.True(t, at >= from && at < to)
	}
	return from
}

func TestMoveCopiesUnitsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t, "to"), draw(t, "from")
		unit := rapid.SampledFrom([]int{1, 3, 4, 8}).Draw(t, "unit")
		aFrom, bFrom := a.check(t), b.check(t)
		dst, src := make([]byte, 1024*unit), make([]byte, 1024*unit)
		for i := range src {
			src[i] = byte(i*7 + 1)
		}
		want := make([]byte, len(dst))
		for i := range min(len(a.places), len(b.places)) {
			copy(want[(a.places[i]-aFrom)*unit:][:unit], src[(b.places[i]-bFrom)*unit:][:unit])
		}
		d, s := Start(&a.Layout, -aFrom*unit, unit), Start(&b.Layout, -bFrom*unit, unit)
		Move(dst, &d, src, &s)
		require.Equal(t, want, dst)
	})
}

func TestLayoutsThatCannotBe(t *testing.T) {
	for name, l := range map[string]Layout{
		"negative count":       Strided(-1, 1, 1),
		"negative block":       Strided(1, -1, 1),
		"too many":             Strided(math.MaxInt, math.MaxInt, 1),
		"too many in a row":    Strided(math.MaxInt, 2, 2),
		"too far":              Strided(3, 1, math.MaxInt),
		"too far below":        Strided(3, 1, math.MinInt),
		"blocks below nothing": Indexed([]int{1}, -1),
		"offset below 0":       Indexed([]int{1, -1}, 1),
		"offset beyond all":    Indexed([]int{math.MaxInt}, 1),
		"lists that differ":    Ragged([]int{1}, nil),
		"length below 0":       Ragged([]int{1}, []int{-1}),
		"length beyond all":    Ragged([]int{1}, []int{math.MaxInt}),
		"no dimensions":        Box(nil, nil, nil),
		"dimensions differ":    Box([]int{1, 2}, []int{0}, []int{1, 1}),
		"five dimensions":      Box(make([]int, 5), make([]int, 5), make([]int, 5)),
		"beyond the shape":     Box([]int{4, 4}, []int{0, 3}, []int{4, 2}),
		"start below 0":        Box([]int{4, 4}, []int{-1, 0}, []int{1, 1}),
		"size below 0":         Box([]int{4, 4}, []int{1, 0}, []int{-1, 1}),
		"overflowing size":     Box([]int{4}, []int{1}, []int{math.MaxInt}),
		"overflowing shape":    Box([]int{math.MaxInt, math.MaxInt, 2}, []int{1, 1, 1}, []int{1, 1, 1}),
	} {
		_, _, _, err := l.Measure()
		require.Error(t, err, name)
		require.False(t, l.Whole(), name)
	}
}
