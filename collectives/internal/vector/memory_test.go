package vector

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"

	"github.com/gopgas/gopgas/internal/element"
)

// kinds are the types that the tables have.
var kinds = []reflect.Kind{
	reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
	reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr,
	reflect.Float32, reflect.Float64, reflect.Complex64, reflect.Complex128,
}

// sizes are the bytes of an element of each kind.
var sizes = map[reflect.Kind]int{
	reflect.Int: element.Size[int](), reflect.Int8: 1, reflect.Int16: 2, reflect.Int32: 4, reflect.Int64: 8,
	reflect.Uint: element.Size[uint](), reflect.Uint8: 1, reflect.Uint16: 2, reflect.Uint32: 4, reflect.Uint64: 8,
	reflect.Uintptr: element.Size[uintptr](), reflect.Float32: 4, reflect.Float64: 8, reflect.Complex64: 8, reflect.Complex128: 16,
}

// part is the bytes of the floating-point numbers in a kind, 0 if it has none.
func part(k reflect.Kind) int {
	switch k {
	case reflect.Float32, reflect.Complex64:
		return 4
	case reflect.Float64, reflect.Complex128:
		return 8
	}
	return 0
}

// fill fills mem with values of kind k: any bits, and often the special values,
// among them equal ones in both operands.
func fill(rng *rand.Rand, k reflect.Kind, mem []byte) {
	for i := range mem {
		mem[i] = byte(rng.Uint32())
	}
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), math.MaxFloat64, 5e-324, 1e-40, 3.25}
	size := part(k)
	for i := 0; size > 0 && i < len(mem); i += size {
		v := special[rng.IntN(len(special))]
		switch {
		case rng.IntN(2) == 0:
		case size == 4:
			binary.NativeEndian.PutUint32(mem[i:], math.Float32bits(float32(v)))
		default:
			binary.NativeEndian.PutUint64(mem[i:], math.Float64bits(v))
		}
	}
	for size := sizes[k]; part(k) == 0 && len(mem) > 0 && rng.IntN(4) == 0; { // a run of the least or the greatest
		at := rng.IntN(len(mem)/size) * size
		clear(mem[at:min(at+4*size, len(mem))])
		mem[at+size-1] = 0x80
	}
}

// same reports whether both are the same bits, or both a NaN.
func same(k reflect.Kind, a, b []byte) bool {
	size := part(k)
	if size == 0 || bytes.Equal(a, b) {
		return bytes.Equal(a, b)
	}
	for i := 0; i < len(a); i += size {
		if x, y := a[i:i+size], b[i:i+size]; !bytes.Equal(x, y) && (!isNaN(x) || !isNaN(y)) {
			return false
		}
	}
	return true
}

func isNaN(bits []byte) bool {
	if len(bits) == 4 {
		f := math.Float32frombits(binary.NativeEndian.Uint32(bits))
		return f != f
	}
	return math.IsNaN(math.Float64frombits(binary.NativeEndian.Uint64(bits)))
}

// in is a slice of n bytes that starts offset bytes behind a boundary of 64,
// between guards.
func in(n, offset int) (mem, whole []byte) {
	whole = bytes.Repeat([]byte{0xA5}, n+256)
	start := 64 + (64-int(address(whole)%64))%64 + offset
	return whole[start : start+n : start+n], whole
}
