package window

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A Condition compares the value of a slot or an element with a wanted value.
type Condition uint8

const (
	// Equal: the slot holds exactly the value.
	Equal Condition = iota
	// AtLeast: the slot holds the value or more.
	AtLeast
	// NotEqual: the slot holds another value.
	NotEqual
	// AtMost: the slot holds the value or less.
	AtMost
	// Greater: the slot holds more than the value.
	Greater
	// Less: the slot holds less than the value.
	Less
	conditions // number of conditions
)

// A wanted is the condition of a wait for values of type V in memory of this rank, which are slots
// or elements. Method sleep copies the caller's slices, so they stay on the caller's stack.
type wanted[V Number] struct {
	slots     bool   // not elements
	mem       []byte // of this rank, from the first slot or element on
	limit     int    // their number
	at        []int
	condition Condition
	value     V
	values    []V
	all       bool
	from      []int // ranks of the team; none: all
}

// load returns the value at a slot or an element. The load pairs with the origin's store.
func (u *wanted[V]) load(at int) V {
	size := element.Size[V]()
	return fromBits[V](atomics.Apply(u.mem[at*size:][:size], driver.AtomicLoad, 0, 0))
}

// look compares once. It returns the position in u.at of the first that meets the
// condition, or with all of the last one, and its value.
func (u *wanted[V]) look() (i int, value V, ok bool) {
	for i, at := range u.at {
		value = u.load(at)
		if met := u.met(i, value); met != u.all {
			return i, value, met
		}
	}
	return len(u.at) - 1, value, u.all
}

// met reports whether the value v at u.at[i] meets the condition.
func (u *wanted[V]) met(i int, v V) bool {
	want := u.value
	if len(u.values) > 0 {
		want = u.values[i]
	}
	return meets(u.condition, v, want)
}

// meets reports whether v meets a condition that wants a value.
func meets[V Number](c Condition, v, want V) bool {
	switch c {
	case AtLeast:
		return v >= want
	case NotEqual:
		return v != want
	case AtMost:
		return v <= want
	case Greater:
		return v > want
	case Less:
		return v < want
	}
	return v == want
}

// check returns the error of wrong arguments.
func (u *wanted[V]) check(c *core, op string) error {
	what := "elements"
	if u.slots {
		what = "slots"
	}
	switch {
	case c.freed.Load():
		return c.fail(op, ErrFreed)
	case len(u.at) == 0:
		return c.fail(op, fmt.Errorf("no %s to look at: %w", what, ErrRange))
	case u.condition >= conditions:
		return c.fail(op, fmt.Errorf("condition %d: %w [0, %d)", u.condition, ErrRange, conditions))
	case u.values != nil && len(u.values) != len(u.at):
		return c.fail(op, fmt.Errorf("%d values for %d %s: %w", len(u.values), len(u.at), what, ErrRange))
	}
	for _, rank := range u.from {
		if uint(rank) >= uint(len(c.team.Members)) {
			return c.fail(op, fmt.Errorf("from rank %d: %w [0, %d)", rank, ErrRange, len(c.team.Members)))
		}
	}
	for _, at := range u.at {
		switch {
		case uint(at) < uint(u.limit):
		case u.slots:
			return c.failSlot(op, c.team.Rank, at, ErrRange)
		default:
			return c.failAt(op, c.team.Rank, at, 1, fmt.Errorf("element %d: %w [0, %d)", at, ErrRange, u.limit))
		}
	}
	return nil
}

// test looks, and once more after it has made progress.
func (u *wanted[V]) test(c *core, op string) (i int, value V, ok bool, err error) {
	if err := u.check(c, op); err != nil {
		return 0, 0, false, err
	}
	if i, value, ok = u.look(); !ok {
		c.team.Progress()
		i, value, ok = u.look()
	}
	return i, value, ok, nil
}

// wait returns as look does, once the condition is met.
func (u *wanted[V]) wait(ctx context.Context, c *core, op string) (i int, value V, err error) {
	i, value, ok, err := u.test(c, op)
	if ok || err != nil {
		return i, value, err
	}
	return sleep(ctx, c, op, *u)
}

// sleep waits for a condition that was not met at first. It copies the caller's slices.
func sleep[V Number](ctx context.Context, c *core, op string, u wanted[V]) (i int, value V, err error) {
	u.at = append([]int(nil), u.at...)
	u.values = append([]V(nil), u.values...)
	u.from = append([]int(nil), u.from...)
	ok := false
	ready := func() bool {
		i, value, ok = u.look()
		return ok || c.freed.Load()
	}
	if u.slots {
		err = c.team.AwaitFrom(ctx, u.from, false, ready)
	} else {
		err = c.awaitElements(ctx, u.from, ready)
	}
	switch {
	case ok:
		return i, value, nil
	case err == nil:
		err = ErrFreed
	}
	return 0, 0, c.fail(op, err)
}
