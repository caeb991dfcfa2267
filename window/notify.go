package window

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
)

// A Signal describes the effect of a notified operation on a slot of the target:
// its value becomes Value or, with Add, grows by it. Slots hold 64 bits and start
// at 0.
type Signal struct {
	Slot  int
	Value uint64
	Add   bool
}

// PutNotify puts src and then signals: a rank that sees the signal, through
// WaitNotify or TestNotify, sees the data. It returns at local completion. With
// an empty src it only signals. If ctx ends, a signal without Add was not sent; one
// with Add may have been. Once a signal without Add is posted, ctx no longer fails
// the call. Kind: one-sided.
func (w *Window[T]) PutNotify(ctx context.Context, target, index int, src []T, s Signal) error {
	if uint(s.Slot) >= uint(w.layout.slots) {
		return w.failSlot("PutNotify", target, s.Slot, ErrRange)
	}
	r, v, err := w.view(ctx, target, index, len(src))
	if err != nil {
		return w.failAt("PutNotify", target, index, len(src), err)
	}
	if v != nil {
		v.count(len(src))
	}
	flag := fabric.Flag{Offset: w.layout.slot(s.Slot), Add: s.Add, Value: s.Value}
	if len(src) == 0 {
		err = r.PostFlag(ctx, flag)
	} else {
		err = r.Notify(ctx, w.layout.offset(index), element.Bytes(src), flag)
	}
	return w.failAt("PutNotify", target, index, len(src), err)
}

// A Condition compares a slot's value with a wanted value.
type Condition uint8

const (
	// Equal: the slot holds exactly the value.
	Equal Condition = iota
	// AtLeast: the slot holds the value or more.
	AtLeast
	// NotEqual: the slot holds another value.
	NotEqual
	conditions // number of conditions
)

// Until is the condition of a wait: slots of this rank meet it, any one of them
// or all.
type Until struct {
	Slots     []int // at least one
	Condition Condition
	Value     uint64
	Values    []uint64 // if any: compared with Slots one by one, instead of Value
	All       bool
}

// WaitNotify waits until this rank's slots meet u. It returns the first of
// u.Slots that meets the condition (with All, the last, since all do) and its
// value. The slots keep their values: ResetNotify changes them. It ends early
// when a rank of the team is gone. Kind: local.
func (w *Window[T]) WaitNotify(ctx context.Context, u Until) (slot int, value uint64, err error) {
	slot, value, ok, err := w.testNotify("WaitNotify", &u)
	if ok || err != nil {
		return slot, value, err
	}
	err = w.team.Await(ctx, func() bool {
		slot, value, ok = w.look(&u)
		return ok || w.freed.Load()
	})
	switch {
	case ok:
		return slot, value, nil
	case err == nil:
		err = ErrFreed
	}
	return 0, 0, w.fail("WaitNotify", err)
}

// TestNotify is WaitNotify without the wait: ok reports whether the slots meet u
// now. It makes progress. Kind: local.
func (w *Window[T]) TestNotify(u Until) (slot int, value uint64, ok bool, err error) {
	return w.testNotify("TestNotify", &u)
}

func (c *core) testNotify(op string, u *Until) (slot int, value uint64, ok bool, err error) {
	if c.freed.Load() {
		return 0, 0, false, c.fail(op, ErrFreed)
	}
	if len(u.Slots) == 0 {
		return 0, 0, false, c.fail(op, fmt.Errorf("no slots to look at: %w", ErrRange))
	}
	if u.Condition >= conditions {
		return 0, 0, false, c.fail(op, fmt.Errorf("condition %d: %w [0, %d)", u.Condition, ErrRange, conditions))
	}
	if u.Values != nil && len(u.Values) != len(u.Slots) {
		return 0, 0, false, c.fail(op, fmt.Errorf("%d values for %d slots: %w", len(u.Values), len(u.Slots), ErrRange))
	}
	for _, s := range u.Slots {
		if uint(s) >= uint(c.layout.slots) {
			return 0, 0, false, c.failSlot(op, c.team.Rank, s, ErrRange)
		}
	}
	if slot, value, ok = c.look(u); !ok {
		c.team.Progress()
		slot, value, ok = c.look(u)
	}
	return slot, value, ok, nil
}

// ResetNotify stores a value in this rank's slot and returns the slot's earlier
// value. No signal is lost: it is one atomic exchange. Kind: local.
func (w *Window[T]) ResetNotify(slot int, value uint64) (old uint64, err error) {
	switch {
	case w.freed.Load():
		return 0, w.fail("ResetNotify", ErrFreed)
	case uint(slot) >= uint(w.layout.slots):
		return 0, w.failSlot("ResetNotify", w.team.Rank, slot, ErrRange)
	}
	if w.team.Coherent() {
		return w.word(w.layout.slot(slot)).Swap(value), nil
	}
	ctx := context.Background() // a rank does not wait for itself
	r, err := w.remote(ctx, w.team.Rank)
	if err == nil {
		old, err = r.Fetch(ctx, w.layout.slot(slot), fabric.Atomic{Op: driver.AtomicSwap, Width: 8, Operand: value})
	}
	return old, w.failAt("ResetNotify", w.team.Rank, -1, 0, err)
}

// look compares the slots once. The loads pair with the signal's store.
func (c *core) look(u *Until) (slot int, value uint64, ok bool) {
	for i, s := range u.Slots {
		v := c.word(c.layout.slot(s)).Load()
		if met := u.met(i, v); met != u.All {
			return s, v, met
		} else if u.All {
			slot, value = s, v
		}
	}
	return slot, value, u.All
}

// met reports whether the value v of slot i of u.Slots meets the condition.
func (u *Until) met(i int, v uint64) bool {
	want := u.Value
	if u.Values != nil {
		want = u.Values[i]
	}
	switch u.Condition {
	case AtLeast:
		return v >= want
	case NotEqual:
		return v != want
	}
	return v == want
}

func (c *core) failSlot(op string, target, slot int, err error) error {
	return &OpError{Op: op, Window: c.name, Rank: c.team.Rank, Target: target, Index: slot, Count: 1,
		Limit: c.layout.slots, Err: fmt.Errorf("notification slot %d: %w [0, %d)", slot, err, c.layout.slots)}
}
