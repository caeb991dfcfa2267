package vector

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/element"
)

// reduced is l ∘ r of single Locs, in all ways in which dst may lie.
func reduced[T ordered](t require.TestingT, op Op, l, r Loc[T]) Loc[T] {
	f, left, right, apart := ForLoc[T](op), []Loc[T]{l}, []Loc[T]{r}, make([]Loc[T], 1)
	f(element.Bytes(apart), element.Bytes(left), element.Bytes(right))
	f(element.Bytes(left), element.Bytes(left), element.Bytes(right))
	f(element.Bytes(right), element.Bytes([]Loc[T]{l}), element.Bytes(right))
	for _, got := range []Loc[T]{left[0], right[0]} {
		require.Equal(t, spell(apart[0]), spell(got))
	}
	return apart[0]
}

// spell tells zeros and Locs apart and makes all NaNs one.
func spell[T ordered](l Loc[T]) [3]any {
	if l.Value != l.Value {
		return [3]any{"NaN", false, l.Index}
	}
	return [3]any{l.Value, math.Signbit(1 / float64(l.Value)), l.Index}
}

func TestLocPrefersTheValueThenTheLowestIndex(t *testing.T) {
	require.Equal(t, Loc[int8]{-3, 9}, reduced(t, Min, Loc[int8]{7, 1}, Loc[int8]{-3, 9}))
	require.Equal(t, Loc[int8]{7, 1}, reduced(t, Max, Loc[int8]{7, 1}, Loc[int8]{-3, 9}))
	require.Equal(t, Loc[uint64]{1 << 63, 4}, reduced(t, Max, Loc[uint64]{1, 5}, Loc[uint64]{1 << 63, 4}))
	for _, op := range []Op{Min, Max} {
		require.Equal(t, Loc[uint16]{5, -2}, reduced(t, op, Loc[uint16]{5, 3}, Loc[uint16]{5, -2}), "%v", op)
		require.Equal(t, Loc[float32]{5, 2}, reduced(t, op, Loc[float32]{5, 2}, Loc[float32]{5, 3}), "%v", op)
	}
}

func TestLocOrdersNaNFirstAndZerosBySign(t *testing.T) {
	nan, minus := math.NaN(), math.Copysign(0, -1)
	for _, op := range []Op{Min, Max} {
		for _, other := range []float64{1, math.Inf(1), math.Inf(-1)} {
			require.Equal(t, spell(Loc[float64]{nan, 8}), spell(reduced(t, op, Loc[float64]{other, 1}, Loc[float64]{nan, 8})))
			require.Equal(t, spell(Loc[float64]{nan, 8}), spell(reduced(t, op, Loc[float64]{nan, 8}, Loc[float64]{other, 1})))
		}
		require.Equal(t, int64(3), reduced(t, op, Loc[float64]{nan, 8}, Loc[float64]{nan, 3}).Index)
	}
	require.Equal(t, int64(8), reduced(t, Min, Loc[float64]{0, 1}, Loc[float64]{minus, 8}).Index)
	require.Equal(t, int64(1), reduced(t, Max, Loc[float64]{0, 1}, Loc[float64]{minus, 0}).Index)
}

// The order is total: reducing Locs in any order gives one result, and its value
// is that of Min or Max.
func testLocIsATotalOrder[T ordered](t *testing.T, values []T) {
	rapid.Check(t, func(t *rapid.T) {
		op := rapid.SampledFrom([]Op{Min, Max}).Draw(t, "op")
		draw := func(name string) Loc[T] {
			return Loc[T]{rapid.SampledFrom(values).Draw(t, name), rapid.Int64Range(-2, 2).Draw(t, name+"'s index")}
		}
		a, b, c := draw("a"), draw("b"), draw("c")
		both := func(l, r Loc[T]) Loc[T] { return reduced(t, op, l, r) }
		require.Equal(t, spell(both(a, b)), spell(both(b, a)))
		require.Equal(t, spell(both(a, both(b, c))), spell(both(both(a, b), c)))
		require.Equal(t, spell(a), spell(both(a, a)))
		want := []T{0}
		For[T](op)(element.Bytes(want), element.Bytes([]T{a.Value}), element.Bytes([]T{b.Value}))
		require.Equal(t, spell(Loc[T]{Value: want[0]}), spell(Loc[T]{Value: both(a, b).Value}))
	})
}

func TestLocOfFloatsIsATotalOrder(t *testing.T) {
	testLocIsATotalOrder(t, []float64{math.NaN(), math.Inf(-1), -1, math.Copysign(0, -1), 0, 1, math.Inf(1)})
}

func TestLocOfIntegersIsATotalOrder(t *testing.T) {
	testLocIsATotalOrder(t, []int32{math.MinInt32, -1, 0, 1, math.MaxInt32})
}

func TestLocWalksAllElements(t *testing.T) {
	const n = 100
	left, right := make([]Loc[int16], n), make([]Loc[int16], n)
	for i := range left {
		left[i], right[i] = Loc[int16]{int16(i), 1}, Loc[int16]{int16(n - i), 2}
	}
	ForLoc[int16](Min)(element.Bytes(left), element.Bytes(left), element.Bytes(right))
	for i, l := range left {
		require.Equal(t, int16(min(i, n-i)), l.Value)
	}
}

func TestLocHasAllRealTypes(t *testing.T) {
	for _, k := range kinds {
		has := k != reflect.Complex64 && k != reflect.Complex128
		require.Equal(t, has, locatedPlain.get(k, Min) != nil, k)
		require.Equal(t, has, locatedPlain.get(k, Max) != nil, k)
	}
	require.NotNil(t, ForLoc[celsius](Min))
}

// Both forms choose the same operand, to the bits of a NaN.
func TestAssemblyOfLocEqualsPlainForm(t *testing.T) {
	kernels(t)
	const loc = 16
	rng := rand.New(rand.NewPCG(9, 10))
	for _, k := range kinds {
		for op, fast := range locatedAssembly[k] {
			require.Equal(t, locatedPlain.get(k, Op(op)) == nil, fast == nil)
			for n := 0; fast != nil && n < 100*loc; n += loc {
				l, _ := in(n, rng.IntN(64))
				r, _ := in(n, rng.IntN(64))
				got, whole := in(n, rng.IntN(64))
				guards, want := bytes.Clone(whole), make([]byte, n)
				fillLocs(rng, k, l)
				fillLocs(rng, k, r)
				locatedPlain.get(k, Op(op))(want, l, r)
				fast(got, l, r)
				fast(l, l, r)
				for at := 0; at < n; at += loc {
					for _, g := range [][]byte{got, l} {
						require.Equalf(t, want[at:at+sizes[k]], g[at:at+sizes[k]], "%v of %v: value", Op(op), k)
						require.Equalf(t, want[at+8:at+loc], g[at+8:at+loc], "%v of %v: index", Op(op), k)
					}
				}
				copy(got, guards[address(got)-address(whole):])
				require.Equal(t, guards, whole)
			}
		}
	}
}

// fillLocs makes Locs of few values and indices, so that many are equal, and of
// any bits, which are padding too.
func fillLocs(rng *rand.Rand, k reflect.Kind, mem []byte) {
	fill(rng, k, mem[:len(mem)/sizes[k]*sizes[k]])
	for at := 0; at < len(mem); at += 16 {
		switch rng.IntN(4) {
		case 0:
			clear(mem[at : at+sizes[k]])
			mem[at+sizes[k]-1] = byte(rng.IntN(2)) << 7
		case 1: // the least in absolute value that is not 0, or the least of all
			clear(mem[at : at+sizes[k]])
			mem[at] = 1
			mem[at+sizes[k]-1] |= byte(rng.IntN(2)) << 7
		}
		if rng.IntN(2) == 0 {
			binary.NativeEndian.PutUint64(mem[at+8:], uint64(rng.Int64N(3)-1))
		}
	}
}
