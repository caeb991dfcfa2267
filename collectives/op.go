package collectives

import (
	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/collectives/internal/vector"
)

// Integer are the types that And, Or and Xor combine.
type Integer interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr
}

// Ordered are the types that Min and Max combine.
type Ordered interface {
	Integer | ~float32 | ~float64
}

// Number are the types that Sum and Prod combine.
type Number interface {
	Ordered | ~complex64 | ~complex128
}

// An Op combines two elements into one. It is associative; results are what
// a0 ∘ a1 ∘ ... ∘ a(n-1) is, with the members' elements in the order of their ranks.
// Of one that commutes the order is free, which shows in the last bits of
// floating-point numbers; [Deterministic] fixes it.
type Op[T any] struct {
	name      string
	f         message.Combine
	commutes  bool
	byProgram bool // it may take any time
}

// Name returns the operator's name, by which members compare theirs. Kind: local.
func (op Op[T]) Name() string { return op.name }

// Sum adds. Integers wrap around. Kind: local.
func Sum[T Number]() Op[T] { return Op[T]{"Sum", vector.For[T](vector.Sum), true, false} }

// Prod multiplies. Integers wrap around. Kind: local.
func Prod[T Number]() Op[T] { return Op[T]{"Prod", vector.For[T](vector.Prod), true, false} }

// Min is Go's min: NaN if one is, and -0 is less than +0. Kind: local.
func Min[T Ordered]() Op[T] { return Op[T]{"Min", vector.For[T](vector.Min), true, false} }

// Max is Go's max: NaN if one is, and +0 is greater than -0. Kind: local.
func Max[T Ordered]() Op[T] { return Op[T]{"Max", vector.For[T](vector.Max), true, false} }

// And is bitwise. Kind: local.
func And[T Integer]() Op[T] { return Op[T]{"And", vector.For[T](vector.And), true, false} }

// Or is bitwise. Kind: local.
func Or[T Integer]() Op[T] { return Op[T]{"Or", vector.For[T](vector.Or), true, false} }

// Xor is bitwise. Kind: local.
func Xor[T Integer]() Op[T] { return Op[T]{"Xor", vector.For[T](vector.Xor), true, false} }

// A Loc is a value and where it was found.
type Loc[T Ordered] struct {
	Value T
	Index int64
}

// MinLoc takes the least value, and of equal ones the lowest index. A NaN is less
// than all else. Kind: local.
func MinLoc[T Ordered]() Op[Loc[T]] {
	return Op[Loc[T]]{"MinLoc", vector.ForLoc[T](vector.Min), true, false}
}

// MaxLoc takes the greatest value, and of equal ones the lowest index. A NaN is
// greater than all else. Kind: local.
func MaxLoc[T Ordered]() Op[Loc[T]] {
	return Op[Loc[T]]{"MaxLoc", vector.ForLoc[T](vector.Max), true, false}
}

// NewOp makes an operator of an associative function. commutes says that
// f(a, b) is f(b, a). Members compare names, which stand for what f does. f is
// called by any goroutine, one call at a time. If it panics the team is broken; in a
// call that was started nobody can recover. Kind: local; make it once, it
// allocates. Calls by one without a name or a function are [ErrOp].
func NewOp[T any](name string, commutes bool, f func(left, right T) T) Op[T] {
	if f == nil {
		return Op[T]{name: name}
	}
	return Op[T]{name, vector.Func(f), commutes, true}
}

// NewSliceOp is NewOp of a function of slices, dst[i] = left[i] ∘ right[i]. All
// three are as long, and dst may be left or right itself. Kind: local.
func NewSliceOp[T any](name string, commutes bool, f func(dst, left, right []T)) Op[T] {
	if f == nil {
		return Op[T]{name: name}
	}
	return Op[T]{name, vector.Slices(f), commutes, true}
}
