package vector

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/element"
)

// affine is x -> a·x + b in wrapping arithmetic: composition associates and does
// not commute.
type affine struct{ A, B, Unused uint32 }

func compose(l, r affine) affine { return affine{A: l.A * r.A, B: l.A*r.B + l.B} }

func TestFuncAndSlicesCallTheProgramsFunction(t *testing.T) {
	left, right := []affine{{2, 1, 0}, {3, 5, 0}}, []affine{{7, 4, 0}, {1, 1, 0}}
	got := make([]affine, 2)
	Func(compose)(element.Bytes(got), element.Bytes(left), element.Bytes(right))
	require.Equal(t, []affine{{14, 9, 0}, {3, 8, 0}}, got)

	Slices(func(dst, l, r []affine) {
		require.Len(t, l, len(dst))
		require.Len(t, r, len(dst))
		for i := range dst {
			dst[i] = compose(r[i], l[i])
		}
	})(element.Bytes(left), element.Bytes(left), element.Bytes(right))
	require.Equal(t, []affine{{14, 11, 0}, {3, 6, 0}}, left)
}

// TestFuncCombinesEachElementOnceInOrder writes to memory of its own, and over each operand.
func TestFuncCombinesEachElementOnceInOrder(t *testing.T) {
	for n := range 14 {
		var calls, want []affine
		f := Func(func(l, r affine) affine {
			calls = append(calls, l)
			return compose(l, r)
		})
		left, right := make([]affine, n), make([]affine, n)
		for i := range n {
			left[i], right[i] = affine{A: uint32(i + 2), B: uint32(7 * i)}, affine{A: uint32(3*i + 1), B: uint32(i + 5)}
			want = append(want, compose(left[i], right[i]))
		}
		order := slices.Clone(left)
		for _, dst := range [][]affine{make([]affine, n), slices.Clone(left), slices.Clone(right)} {
			l, r := slices.Clone(left), slices.Clone(right)
			switch {
			case slices.Equal(dst, left):
				l = dst
			case slices.Equal(dst, right):
				r = dst
			}
			calls = nil
			f(element.Bytes(dst), element.Bytes(l), element.Bytes(r))
			require.True(t, slices.Equal(want, dst), "%d elements: %v", n, dst)
			require.True(t, slices.Equal(order, calls), "%d elements", n)
		}
	}
}

func TestReducingAllocatesNothing(t *testing.T) {
	left, right := make([]float64, 1000), make([]float64, 1000)
	l, r := element.Bytes(left), element.Bytes(right)
	user, locs := Func(func(a, b float64) float64 { return a + b }), make([]byte, 160)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		For[float64](Sum)(l, l, r)
		plain.get(reflect.Float64, Min)(l, l, r)
		ForLoc[float64](Min)(locs, locs, locs)
		user(l, l, r)
	}))
}
