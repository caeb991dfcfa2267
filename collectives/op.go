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

// An Op combines two elements into one. It must be associative. A call's result is
// a0 ∘ a1 ∘ ... ∘ a(n-1), with the members' elements in the order of their ranks. If
// the operator commutes, a call may combine in any order, and the last bits of
// floating-point results may differ; [Deterministic] fixes the order.
type Op[T any] struct {
	name      string
	f         message.Combine
	commutes  bool
	byProgram bool // the program wrote it, and it may take any time
	single    bool // it combines one element at a time
}

// Name returns the operator's name, by which members compare theirs. Kind: local.
func (op Op[T]) Name() string { return op.name }

// builtIn makes an operator of this package. All of them commute.
func builtIn[T any](name string, f message.Combine) Op[T] {
	return Op[T]{name: name, f: f, commutes: true}
}

// Sum adds. Integers wrap around. Kind: local.
func Sum[T Number]() Op[T] { return builtIn[T]("Sum", vector.For[T](vector.Sum)) }

// Prod multiplies. Integers wrap around. Kind: local.
func Prod[T Number]() Op[T] { return builtIn[T]("Prod", vector.For[T](vector.Prod)) }

// Min is Go's min: NaN if one is, and -0 is less than +0. Kind: local.
func Min[T Ordered]() Op[T] { return builtIn[T]("Min", vector.For[T](vector.Min)) }

// Max is Go's max: NaN if one is, and +0 is greater than -0. Kind: local.
func Max[T Ordered]() Op[T] { return builtIn[T]("Max", vector.For[T](vector.Max)) }

// And is bitwise. Kind: local.
func And[T Integer]() Op[T] { return builtIn[T]("And", vector.For[T](vector.And)) }

// Or is bitwise. Kind: local.
func Or[T Integer]() Op[T] { return builtIn[T]("Or", vector.For[T](vector.Or)) }

// Xor is bitwise. Kind: local.
func Xor[T Integer]() Op[T] { return builtIn[T]("Xor", vector.For[T](vector.Xor)) }

// A Loc is a value and where it was found.
type Loc[T Ordered] struct {
	Value T
	Index int64
}

// MinLoc takes the least value, and of equal ones the lowest index. A NaN is less
// than all else. Kind: local.
func MinLoc[T Ordered]() Op[Loc[T]] {
	return builtIn[Loc[T]]("MinLoc", vector.ForLoc[T](vector.Min))
}

// MaxLoc takes the greatest value, and of equal ones the lowest index. A NaN is
// greater than all else. Kind: local.
func MaxLoc[T Ordered]() Op[Loc[T]] {
	return builtIn[Loc[T]]("MaxLoc", vector.ForLoc[T](vector.Max))
}

// NewOp makes an operator of an associative function. commutes says that
// f(a, b) is f(b, a). Members compare names, which stand for what f does. f is
// called by any goroutine, one call at a time. If it panics the team is broken; in a
// call that was started the program cannot recover. f costs a call for each element: a
// function of slices ([NewSliceOp]) takes a fifth to two thirds of the time. Kind: local;
// make it once, it allocates. Calls by an operator without a name or a function return [ErrOp].
func NewOp[T any](name string, commutes bool, f func(left, right T) T) Op[T] {
	if f == nil {
		return Op[T]{name: name}
	}
	return Op[T]{name: name, f: vector.Func(f), commutes: commutes, byProgram: true, single: true}
}

// NewSliceOp is NewOp of a function of slices, dst[i] = left[i] ∘ right[i]. All
// three are as long, and dst may be left or right itself. All members make an operator
// by NewOp, or all by NewSliceOp. Kind: local.
func NewSliceOp[T any](name string, commutes bool, f func(dst, left, right []T)) Op[T] {
	if f == nil {
		return Op[T]{name: name}
	}
	return Op[T]{name: name, f: vector.Slices(f), commutes: commutes, byProgram: true}
}
