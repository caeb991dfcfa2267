package vector

import (
	"fmt"

	"github.com/gopgas/gopgas/internal/element"
)

// The loops of all operators, in Go: the rows of plain. Package vector takes one where the processor or assembly has
// no faster form. Each sets dst to left combined with right, element by element.

// integer has the types with bit operations.
type integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// float has the types with NaNs.
type float interface{ ~float32 | ~float64 }

// ordered has the types with a minimum and a maximum.
type ordered interface{ integer | float }

// number has the types with a sum and a product.
type number interface {
	ordered | ~complex64 | ~complex128
}

// operands returns all three as elements. They have the same length; a loop over
// them repeats that, so that the compiler leaves out the bounds checks.
func operands[T any](dst, left, right []byte) (d, l, r []T) {
	if len(left) != len(dst) || len(right) != len(dst) {
		unequal(dst, left, right)
	}
	n := len(dst) / element.Size[T]()
	return element.View[T](dst, n), element.View[T](left, n), element.View[T](right, n)
}

// unequal panics for both forms if the lengths differ.
func unequal(dst, left, right []byte) {
	panic(fmt.Sprintf("vector: combining %d and %d bytes into %d", len(left), len(right), len(dst)))
}

func sum[T number](dst, left, right []byte) {
	d, l, r := operands[T](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		d[i] = l[i] + r[i]
	}
}

func prod[T ordered](dst, left, right []byte) {
	d, l, r := operands[T](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		d[i] = l[i] * r[i]
	}
}

// prodComplex64 computes in double precision, as Go's operator does.
func prodComplex64(dst, left, right []byte) {
	d, l, r := operands[complex64](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		d[i] = complex64(multiply(complex128(l[i]), complex128(r[i])))
	}
}

func prodComplex128(dst, left, right []byte) {
	d, l, r := operands[complex128](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		d[i] = multiply(l[i], r[i])
	}
}

// multiply rounds the products explicitly, so that the compiler does not fuse
// them with the sums on machines that could.
func multiply(x, y complex128) complex128 {
	a, b, c, d := real(x), imag(x), real(y), imag(y)
	return complex(float64(a*c)-float64(b*d), float64(a*d)+float64(b*c))
}

func minimum[T ordered](dst, left, right []byte) {
	d, l, r := operands[T](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		d[i] = min(l[i], r[i])
	}
}

func maximum[T ordered](dst, left, right []byte) {
	d, l, r := operands[T](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		d[i] = max(l[i], r[i])
	}
}

func and[T integer](dst, left, right []byte) {
	d, l, r := operands[T](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		d[i] = l[i] & r[i]
	}
}

func or[T integer](dst, left, right []byte) {
	d, l, r := operands[T](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		d[i] = l[i] | r[i]
	}
}

func xor[T integer](dst, left, right []byte) {
	d, l, r := operands[T](dst, left, right)
	l, r = l[:len(d)], r[:len(d)]
	for i := range d {
		d[i] = l[i] ^ r[i]
	}
}
