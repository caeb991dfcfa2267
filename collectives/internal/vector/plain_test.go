package vector

import (
	"cmp"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"github.com/gopgas/gopgas/internal/element"
)

// agrees compares the results of For and the plain table with Go's own operator.
func agrees[T number](t *testing.T, op Op, want func(l, r T) T) {
	t.Helper()
	k, rng := reflect.TypeFor[T]().Kind(), rand.New(rand.NewPCG(1, 2))
	left, right, expected := make([]T, 1000), make([]T, 1000), make([]T, 1000)
	fill(rng, k, element.Bytes(left))
	fill(rng, k, element.Bytes(right))
	for i := range left {
		expected[i] = want(left[i], right[i])
	}
	for name, f := range map[string]Combine{"For": For[T](op), "plain": plain.get(k, op)} {
		require.NotNilf(t, f, "%s: no %v of %v", name, op, k)
		got := make([]T, 1000)
		f(element.Bytes(got), element.Bytes(left), element.Bytes(right))
		require.Truef(t, same(k, element.Bytes(got), element.Bytes(expected)), "%s: %v of %v", name, op, k)
	}
}

func agreesNumber[T number](t *testing.T) {
	agrees(t, Sum, func(l, r T) T { return l + r })
}

func agreesOrdered[T ordered](t *testing.T) {
	agreesNumber[T](t)
	agrees(t, Prod, func(l, r T) T { return l * r })
	agrees(t, Min, func(l, r T) T { return min(l, r) })
	agrees(t, Max, func(l, r T) T { return max(l, r) })
}

func agreesInteger[T integer](t *testing.T) {
	agreesOrdered[T](t)
	agrees(t, And, func(l, r T) T { return l & r })
	agrees(t, Or, func(l, r T) T { return l | r })
	agrees(t, Xor, func(l, r T) T { return l ^ r })
}

type celsius float32

func TestOperationsEqualGosOperators(t *testing.T) {
	agreesInteger[int](t)
	agreesInteger[int8](t)
	agreesInteger[int16](t)
	agreesInteger[int32](t)
	agreesInteger[int64](t)
	agreesInteger[uint](t)
	agreesInteger[uint8](t)
	agreesInteger[uint16](t)
	agreesInteger[uint32](t)
	agreesInteger[uint64](t)
	agreesInteger[uintptr](t)
	agreesOrdered[float32](t)
	agreesOrdered[float64](t)
	agreesOrdered[celsius](t)
	agreesNumber[complex64](t)
	agreesNumber[complex128](t)
	agrees(t, Prod, func(l, r complex64) complex64 { return l * r })
	agrees(t, Prod, func(l, r complex128) complex128 {
		a, b, c, d := real(l), imag(l), real(r), imag(r)
		return complex(float64(a*c)-float64(b*d), float64(a*d)+float64(b*c))
	})
}

func TestForReturnsNilForTypesWithoutTheOperation(t *testing.T) {
	require.Nil(t, For[float64](Xor))
	require.Nil(t, For[complex64](Min))
	require.Nil(t, For[string](Sum))
	require.Nil(t, For[struct{ A, B int }](Sum))
	require.Nil(t, For[int](ops))
	require.Nil(t, ForLoc[complex128](Min))
	require.Nil(t, ForLoc[int](Sum))
	require.Equal(t, "Xor", Xor.String())
	require.Equal(t, "unknown operation", Op(ops).String())
}

// Min and Max associate because of the order of zeros and NaN.
func TestMinAndMaxReturnNaNAndOrderZerosBySign(t *testing.T) {
	minus := math.Copysign(0, -1)
	bits := func(op Op, l, r float64) float64 {
		got := make([]float64, 5) // one vector and one left over
		For[float64](op)(element.Bytes(got), element.Bytes([]float64{l, l, l, l, l}), element.Bytes([]float64{r, r, r, r, r}))
		for _, g := range got {
			require.Zero(t, cmp.Compare(g, got[0]))
			require.Equal(t, math.Signbit(g), math.Signbit(got[0]))
		}
		return got[0]
	}
	for _, swapped := range []bool{false, true} {
		apply := func(op Op, l, r float64) float64 {
			if swapped {
				l, r = r, l
			}
			return bits(op, l, r)
		}
		require.True(t, math.Signbit(apply(Min, minus, 0)))
		require.False(t, math.Signbit(apply(Max, minus, 0)))
		for _, other := range []float64{minus, 1, math.Inf(-1), math.Inf(1), math.NaN()} {
			require.True(t, math.IsNaN(apply(Min, math.NaN(), other)))
			require.True(t, math.IsNaN(apply(Max, math.NaN(), other)))
		}
	}
}

func TestOperandsOfDifferentLengthsPanicInBothForms(t *testing.T) {
	for _, form := range []*table{&plain, &assembly} {
		for _, k := range kinds {
			f := form.get(k, Sum)
			if f == nil || form == &assembly && !cpu.X86.HasAVX2 {
				continue
			}
			require.Panics(t, func() { f(make([]byte, 64), make([]byte, 64), make([]byte, 48, 64)) }, k)
			require.Panics(t, func() { f(make([]byte, 64), make([]byte, 128), make([]byte, 64)) }, k)
			require.NotPanics(t, func() { f(nil, nil, nil) }, k)
		}
	}
}
