package vector

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/element"
)

// affine is x -> a·x + b in wrapping arithmetic: composition associates and does
// not commute.
type affine struct{ A, B, Unused uint32 }

func compose(l, r affine) affine { return affine{A: l.A * r.A, B: l.A*r.B + l.B} }

func TestFuncAndSlicesCallThePrograms(t *testing.T) {
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

func TestManyReducesFromLeftToRightWithWhateverAliases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, members := rapid.IntRange(0, 3000).Draw(t, "elements"), rapid.IntRange(1, 9).Draw(t, "inputs")
		f, rng := Func(compose), rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		in := make([][]byte, members)
		for i := range in {
			in[i] = make([]byte, n*element.Size[affine]())
			fill(rng, reflect.Uint32, in[i])
		}
		want := slices.Clone(in[0])
		for _, next := range in[1:] {
			f(want, want, next)
		}
		if members == 1 {
			f = nil // nothing to combine
		}
		var out [][]byte
		switch rapid.SampledFrom([]string{"apart", "first", "second", "all", "last behind apart"}).Draw(t, "outputs") {
		case "apart":
			out = [][]byte{make([]byte, len(want)), make([]byte, len(want))}
		case "first":
			out = in[:1]
		case "second":
			out = in[min(1, members-1) : min(1, members-1)+1]
		case "all":
			out = slices.Clone(in)
		case "last behind apart":
			out = [][]byte{make([]byte, len(want)), in[members-1]}
		}
		Many(f, element.Size[affine](), out, in)
		for i := range out {
			require.Equal(t, want, out[i])
		}
	})
}

func TestManyTakesElementsLargerThanItsBlocks(t *testing.T) {
	type large [3 * block]byte
	add := Func(func(l, r large) large {
		for i := range l {
			l[i] += r[i]
		}
		return l
	})
	a, b, got := make([]large, 2), make([]large, 2), make([]large, 2)
	a[1][5], b[1][5] = 3, 4
	Many(add, element.Size[large](), [][]byte{element.Bytes(got)}, [][]byte{element.Bytes(a), element.Bytes(b)})
	require.Equal(t, byte(7), got[1][5])
}

func TestReducingAllocatesNothing(t *testing.T) {
	left, right := make([]float64, 1000), make([]float64, 1000)
	l, r := element.Bytes(left), element.Bytes(right)
	out, in := [][]byte{l, r}, [][]byte{l, r, r}
	user, locs := Func(func(a, b float64) float64 { return a + b }), make([]byte, 160)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		For[float64](Sum)(l, l, r)
		plain.get(reflect.Float64, Min)(l, l, r)
		ForLoc[float64](Min)(locs, locs, locs)
		user(l, l, r)
		Many(user, 8, out, in)
	}))
}
