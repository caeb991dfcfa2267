package window

import (
	"reflect"

	"github.com/gopgas/gopgas/verbs/driver"
)

// An Op combines an element with an operand. [Accumulate], [GetAccumulate] and [FetchOp] store the result in
// the element. The functions of this package make operators; the zero Op is none. Type complex128 needs an
// instruction of the target's CPU. Where it has none, and where NICs apply atomics, calls return
// driver.ErrUnsupported.
type Op[T any] struct {
	atomic  driver.AtomicOp            // of a [Scalar], else 0
	combine func(element, operand T) T // without atomic
	loads   bool                       // it leaves the element as it is
}

// made reports whether a function of this package made the operator.
func (op *Op[T]) made() bool { return op.atomic != 0 || op.combine != nil || op.loads }

// Sum adds. Integers wrap around. Kind: local.
func Sum[T Scalar]() Op[T] {
	return arithmetic[T](driver.AtomicAdd, driver.AtomicAddFloat, driver.AtomicAddComplex)
}

// Prod multiplies. Integers wrap around. Kind: local.
func Prod[T Scalar]() Op[T] {
	return arithmetic[T](driver.AtomicMul, driver.AtomicMulFloat, driver.AtomicMulComplex)
}

// Min is Go's min: NaN if one is, and -0 is less than +0. Kind: local.
func Min[T Number]() Op[T] { return Op[T]{atomic: minOf[T]()} }

// Max is Go's max: NaN if one is, and +0 is greater than -0. Kind: local.
func Max[T Number]() Op[T] { return Op[T]{atomic: maxOf[T]()} }

// And is bitwise. Kind: local.
func And[T Integer]() Op[T] { return Op[T]{atomic: driver.AtomicAnd} }

// Or is bitwise. Kind: local.
func Or[T Integer]() Op[T] { return Op[T]{atomic: driver.AtomicOr} }

// Xor is bitwise. Kind: local.
func Xor[T Integer]() Op[T] { return Op[T]{atomic: driver.AtomicXor} }

// Replace stores the operand, an element of any type. Kind: local.
func Replace[T any]() Op[T] {
	if isScalar[T]() {
		return Op[T]{atomic: driver.AtomicSwap}
	}
	return Op[T]{combine: func(_, operand T) T { return operand }}
}

// NoOp leaves the element as it is. It makes [GetAccumulate] an atomic load of each element, which
// may be of any type. Kind: local.
func NoOp[T any]() Op[T] {
	if isScalar[T]() {
		return Op[T]{atomic: driver.AtomicLoad}
	}
	return Op[T]{loads: true}
}

// isScalar reports whether T is a type of [Scalar].
func isScalar[T any]() bool {
	k := reflect.TypeFor[T]().Kind()
	return k >= reflect.Int && k <= reflect.Complex128
}

// arithmetic returns the operation for the numbers of T.
func arithmetic[T Scalar](integer, float, pair driver.AtomicOp) Op[T] {
	switch reflect.TypeFor[T]().Kind() {
	case reflect.Float32, reflect.Float64:
		return Op[T]{atomic: float}
	case reflect.Complex64, reflect.Complex128:
		return Op[T]{atomic: pair}
	}
	return Op[T]{atomic: integer}
}
