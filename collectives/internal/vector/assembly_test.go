package vector

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// The ways in which dst lies to the operands.
const (
	apart = iota
	overLeft
	overRight
	overBoth
	aliases
)

// kernel is an operation that has an assembly form.
type kernel struct {
	kind reflect.Kind
	op   Op
}

func kernels(t interface{ Skip(...any) }) (all []kernel) {
	if !cpu.X86.HasAVX2 {
		t.Skip("this processor has no AVX2")
	}
	for _, k := range kinds {
		for op := range Op(ops) {
			if assembly.get(k, op) != nil {
				all = append(all, kernel{k, op})
			}
		}
	}
	return all
}

// compare runs both forms on n bytes whose three slices start at the given
// offsets, and describes the first difference.
func (k kernel) compare(rng *rand.Rand, n int, offsets [3]int, alias int) string {
	l, _ := in(n, offsets[0])
	r, _ := in(n, offsets[1])
	d, whole := in(n, offsets[2])
	fill(rng, k.kind, l)
	fill(rng, k.kind, r)
	if rng.IntN(2) == 0 { // equal operands here and there
		copy(r[:n/2/sizes[k.kind]*sizes[k.kind]], l)
	}
	switch alias {
	case overLeft:
		copy(d, l)
		l = d
	case overRight:
		copy(d, r)
		r = d
	case overBoth:
		copy(d, l)
		l, r = d, d
	}
	want := make([]byte, n)
	plain.get(k.kind, k.op)(want, l, r)
	before := append([]byte(nil), whole...)
	assembly.get(k.kind, k.op)(d, l, r)
	if !same(k.kind, want, d) {
		return "the forms differ"
	}
	copy(d, before[address(d)-address(whole):])
	if string(before) != string(whole) {
		return "written outside of dst"
	}
	return ""
}

func TestAssemblyEqualsPlainFormAtEveryLengthAndAlignment(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, k := range kernels(t) {
		for n := 0; n <= 300; n += sizes[k.kind] {
			for alias := range aliases {
				offsets := [3]int{rng.IntN(64), rng.IntN(64), rng.IntN(64)}
				require.Emptyf(t, k.compare(rng, n, offsets, alias), "%v of %v, %d bytes, offsets %v, alias %d", k.op, k.kind, n, offsets, alias)
			}
		}
		for offset := range 64 {
			offsets := [3]int{offset, 0, offset}
			require.Emptyf(t, k.compare(rng, 208, offsets, apart), "%v of %v, offsets %v", k.op, k.kind, offsets)
		}
	}
}

func TestAssemblyEqualsPlainFormOnRandomOperands(t *testing.T) {
	all := kernels(t)
	offset := rapid.IntRange(0, 63)
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.SampledFrom(all).Draw(t, "kernel")
		n := rapid.IntRange(0, 1<<16).Draw(t, "bytes") / sizes[k.kind] * sizes[k.kind]
		offsets := [3]int{offset.Draw(t, "left"), offset.Draw(t, "right"), offset.Draw(t, "dst")}
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		require.Empty(t, k.compare(rng, n, offsets, rapid.IntRange(0, aliases-1).Draw(t, "alias")))
	})
}

// Long slices are written another way, if dst is no operand and is aligned.
func TestAssemblyOfLongSlicesEqualsThatOfShortSlices(t *testing.T) {
	const n, short = 8<<20 + 4*128 + 48, 48 << 10
	rng := rand.New(rand.NewPCG(5, 6))
	l, _ := in(n, 0)
	r, _ := in(n, 5)
	d, whole := in(n+64, 0)
	want, guard := make([]byte, n), bytes.Repeat([]byte{0xA5}, 64)
	for i, k := range kernels(t) {
		if testwatch.Race && i%4 != 0 { // it does not see the accesses of assembly
			continue
		}
		fill(rng, k.kind, l[:1<<16+16])
		fill(rng, k.kind, r[:1<<16])
		for at := 1 << 16; at < n; at *= 2 {
			copy(l[at+16:], l[:at])
			copy(r[at:], r[:at])
		}
		f := assembly.get(k.kind, k.op)
		for at := 0; at < n; at += short {
			end := min(at+short, n)
			f(want[at:end], l[at:end], r[at:end])
		}
		offset := 16 * rng.IntN(3)
		if rng.IntN(8) == 0 {
			offset++
		}
		got, behind := d[offset:][:n], whole[address(d)-address(whole):][n+offset:][:64]
		copy(behind, guard)
		f(got, l, r)
		require.Truef(t, same(k.kind, want, got), "%v of %v at %d", k.op, k.kind, offset)
		require.Equal(t, guard, behind)
		f(l, l, r)
		require.Truef(t, same(k.kind, want, l), "%v of %v in place", k.op, k.kind)
	}
}

// Every operation of every type has a form in AVX2.
func TestAssemblyHasTheOperationsOfThePlainForm(t *testing.T) {
	kernels(t)
	for _, k := range kinds {
		for op := range Op(ops) {
			require.Equalf(t, plain.get(k, op) == nil, assembly.get(k, op) == nil, "%v of %v", op, k)
		}
	}
}
