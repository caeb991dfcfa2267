package vector

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// where are sizes of an operand that lie in the first cache, in the second, and
// beyond, and one of a single element.
var where = []int{8, 16 << 10, 256 << 10, 16 << 20}

// times runs each of the functions b.N times in turns, and returns the least time
// of a call of each, in nanoseconds. The least time leaves out other work on the
// machine.
func times(b *testing.B, functions ...func()) []float64 {
	best := make([]float64, len(functions))
	for i, f := range functions {
		f()
		best[i] = math.Inf(1)
	}
	for done, step := 0, max(b.N/64, 1); done < b.N; done += step {
		for i, f := range functions {
			start := time.Now()
			for range step {
				f()
			}
			best[i] = min(best[i], float64(time.Since(start).Nanoseconds())/float64(step))
		}
	}
	return best
}

// BenchmarkFor measures each kernel, into a third slice, as multiples of the
// speed of the plain form and of copying one operand. The speed counts bytes of
// one operand.
func BenchmarkFor(b *testing.B) {
	for _, k := range kernels(b) {
		for _, n := range where {
			b.Run(fmt.Sprintf("%v/%v/%d", k.op, k.kind, n), func(b *testing.B) {
				l, r, d := make([]byte, n), make([]byte, n), make([]byte, n)
				fast, slow := assembly.get(k.kind, k.op), plain.get(k.kind, k.op)
				took := times(b,
					func() { fast(d, l, r) },
					func() { slow(d, l, r) },
					func() { copy(d, l) })
				report(b, n, took)
				b.ReportMetric(took[1]/took[0], "x-plain")
				b.ReportMetric(took[2]/took[0], "x-memcpy")
			})
		}
	}
}

func report(b *testing.B, n int, took []float64) {
	b.ReportMetric(0, "ns/op") // it is of all of them together
	b.ReportMetric(float64(n)/took[0], "GB/s")
	b.ReportMetric(took[0], "ns/call")
}

// BenchmarkForLoc measures MinLoc of values in both orders.
func BenchmarkForLoc(b *testing.B) {
	kernels(b)
	for _, k := range []reflect.Kind{reflect.Int32, reflect.Float64} {
		for _, n := range []int{16, 16 << 10, 256 << 10, 16 << 20} {
			b.Run(fmt.Sprintf("%v/%d", k, n), func(b *testing.B) {
				l, r, d := make([]byte, n), make([]byte, n), make([]byte, n)
				rng := rand.New(rand.NewPCG(7, 8))
				fill(rng, reflect.Uint8, l)
				fill(rng, reflect.Uint8, r)
				fast, slow := locatedAssembly.get(k, Min), locatedPlain.get(k, Min)
				took := times(b, func() { fast(d, l, r) }, func() { slow(d, l, r) }, func() { copy(d, l) })
				report(b, n, took)
				b.ReportMetric(took[1]/took[0], "x-plain")
				b.ReportMetric(took[2]/took[0], "x-memcpy")
			})
		}
	}
}

// BenchmarkLookup measures a reduction of one element with its lookup.
func BenchmarkLookup(b *testing.B) {
	l, r := make([]byte, 8), make([]byte, 8)
	for b.Loop() {
		For[float64](Sum)(l, l, r)
	}
}
