package vector

import (
	"reflect"

	"golang.org/x/sys/cpu"
)

// A Combine sets dst = left ∘ right, element by element. All three have the same
// length, a multiple of an element; dst may be left or right itself but overlaps
// neither otherwise. No alignment is needed. Slices of different lengths are a
// mistake of the caller: Combine panics.
type Combine = func(dst, left, right []byte)

// An Op is a predefined operation.
type Op uint8

// The operations. Sum and Prod exist for all numbers and wrap around for
// integers. Min and Max exist for all but complex numbers; And, Or and Xor exist
// for integers.
const (
	Sum Op = iota
	Prod
	Min
	Max
	And
	Or
	Xor

	ops = iota
)

// String names the operation.
func (o Op) String() string {
	names := [ops]string{"Sum", "Prod", "Min", "Max", "And", "Or", "Xor"}
	if int(o) >= len(names) {
		return "unknown operation"
	}
	return names[o]
}

// table holds a Combine for each operation on each type that has it.
type table [reflect.Complex128 + 1][ops]Combine

// get returns nil for an operation or type that the table does not have.
func (t *table) get(k reflect.Kind, op Op) Combine {
	if int(k) >= len(t) || int(op) >= ops {
		return nil
	}
	return t[k][op]
}

// For returns the fastest form of op over elements of type T, a number type or
// one made of it. It returns nil if T has no such operation.
func For[T any](op Op) Combine {
	return fastest(&assembly, &plain, reflect.TypeFor[T]().Kind(), op)
}

// fastest returns the form that is fastest on this processor.
func fastest(assembly, plain *table, k reflect.Kind, op Op) Combine {
	if cpu.X86.HasAVX2 && !race {
		if f := assembly.get(k, op); f != nil {
			return f
		}
	}
	return plain.get(k, op)
}
