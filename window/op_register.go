package window

import (
	"bytes"
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// RegisterOp makes an operator of the program's own: [Accumulate], [GetAccumulate] and [FetchOp] store
// combine(element, operand) in the element. name says what combine does. All ranks of t give the same
// name and T; otherwise all get [runtime.ErrMismatch]. The result works on every window.
//
// combine runs at the origin. It must depend on its arguments only, and it must make no call of this module.
// On integers, floats and complex64 it may run several times for one update. The update is atomic with
// respect to all atomics on the element. Other elements have at most 64 bytes. On them it is atomic with
// respect to operators of RegisterOp, [Replace], [NoOp], [MinLoc] and [MaxLoc], if the elements begin at the
// same place. Type complex128 has atomics of its own: the program must not mix them with an operator of
// RegisterOp on one element at the same time.
//
// At mapped memory an update of a wide element takes a lock of the target, one of 16. At other
// targets it takes two round trips and four posts more; a call that returns earlier values takes a third. If the
// origin dies amid an update, the next rank that needs the lock sees the old or the new value. If ctx ends, the
// update may take effect later. Kind: collective.
func RegisterOp[T any](ctx context.Context, t *runtime.Team, name string, combine func(element, operand T) T) (Op[T], error) {
	fail := func(err error) (Op[T], error) {
		return Op[T]{}, &OpError{Op: "RegisterOp", Window: fmt.Sprintf("(none), operator %q", name), Rank: -1, Target: -1, Index: -1, Err: err}
	}
	if t == nil || team.Of(t) == nil {
		return fail(ErrTeam)
	}
	typ, bad := element.Describe[T]()
	switch {
	case bad != nil:
	case name == "" || combine == nil:
		bad = fmt.Errorf("%w: an operator needs a name and a function", ErrOp)
	case element.Size[T]() > maxWide:
		bad = fmt.Errorf("%w: %d bytes; atomics take %d at most", ErrType, element.Size[T](), maxWide)
	}
	mine := []byte("operator " + name + " of " + typ)
	if bad != nil {
		mine = []byte("no operator: " + bad.Error())
	}
	all, err := t.Exchange(ctx, mine)
	if bad != nil || err != nil {
		return fail(firstOf(bad, err))
	}
	for rank, other := range all {
		if !bytes.Equal(other, mine) {
			return fail(fmt.Errorf("%w: rank %d has %q, rank %d has %q", runtime.ErrMismatch, t.Rank(), mine, rank, other))
		}
	}
	return Op[T]{combine: combine}, nil
}

// firstOf returns the first error that is not nil.
func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// A Loc is a value and where it was found. It is the type of collectives.Loc.
type Loc[T Number] struct {
	Value T
	Index int64
}

// MinLoc keeps the least value, and of equal ones the lowest index: MPI_MINLOC. A NaN is less
// than all else. Kind: local.
func MinLoc[T Number]() Op[Loc[T]] {
	return Op[Loc[T]]{combine: func(element, operand Loc[T]) Loc[T] {
		return locOf(element, operand, operand.Value < element.Value)
	}}
}

// MaxLoc keeps the greatest value, and of equal ones the lowest index: MPI_MAXLOC. A NaN is
// greater than all else. Kind: local.
func MaxLoc[T Number]() Op[Loc[T]] {
	return Op[Loc[T]]{combine: func(element, operand Loc[T]) Loc[T] {
		return locOf(element, operand, operand.Value > element.Value)
	}}
}

// locOf returns b if it is better than a, or as good with a lower index. NaN is best.
func locOf[T Number](a, b Loc[T], better bool) Loc[T] {
	switch nanA, nanB := a.Value != a.Value, b.Value != b.Value; {
	case nanA != nanB:
		better = nanB
	case nanA || a.Value == b.Value:
		better = b.Index < a.Index
	}
	if better {
		return b
	}
	return a
}
