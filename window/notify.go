package window

import (
	"context"
	"fmt"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/bulk"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/wait"
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
// WaitNotify or TestNotify, sees the data, and all that this rank put at the target
// before. It returns at local completion. With an empty src it only signals. If ctx
// ends, a signal without Add was not sent; one with Add may have been. Once a signal
// without Add is posted, ctx no longer fails the call. Kind: one-sided.
func (w *Window[T]) PutNotify(ctx context.Context, target, index int, src []T, s Signal) error {
	if uint(s.Slot) >= uint(w.layout.slots) {
		return w.failSlot("PutNotify", target, s.Slot, ErrRange)
	}
	flag := w.flag(s)
	v := w.mapped(target)
	if v == nil || index < 0 || index > len(v.mem)-len(src) {
		r, reached, err := w.reachView(ctx, target, index, len(src))
		if v = reached; v == nil || err != nil {
			if err == nil {
				err = w.notifyFar(ctx, r, target, index, src, flag)
			}
			return w.failAt("PutNotify", target, index, len(src), err)
		}
	}
	v.count(len(src))
	v.putNotify(index, src, &flag)
	return nil
}

// flag returns the flag of a signal.
func (c *core) flag(s Signal) fabric.Flag {
	return fabric.Flag{Offset: c.layout.slot(s.Slot), Add: s.Add, Value: s.Value, Late: true}
}

// putNotify is PutNotify into mapped memory.
func (v *view[T]) putNotify(index int, src []T, flag *fabric.Flag) {
	if mutant.FlagBeforeData {
		v.remote.StoreFlag(flag)
	}
	if len(src) < bulk.Short/element.Size[T]() {
		copy(v.mem[index:], src)
	} else {
		storeLong(v.mem[index:], src)
	}
	if !mutant.FlagBeforeData {
		v.remote.StoreFlag(flag)
	}
}

// notifyFar is PutNotify into memory that is not mapped.
func (w *Window[T]) notifyFar(ctx context.Context, r *fabric.Remote, target, index int, src []T, flag fabric.Flag) error {
	if w.lent != nil {
		flag.In = w.remotes[target].Load()
	}
	if len(src) == 0 {
		return r.PostFlag(ctx, flag)
	}
	body := fabric.Part{At: w.layout.offset(index), Mem: element.Bytes(src)}
	return r.Put(ctx, &fabric.Put{Body: body, Tell: fabric.TellByFlag, Flag: flag})
}

// StartPutNotify is PutNotify that does not wait for local completion. The caller must not change src
// before Request.Wait returns. ctx bounds finding the target and room in the queue. Kind: one-sided.
func (w *Window[T]) StartPutNotify(ctx context.Context, target, index int, src []T, s Signal) (Request, error) {
	if uint(s.Slot) >= uint(w.layout.slots) {
		return Request{}, w.failSlot("StartPutNotify", target, s.Slot, ErrRange)
	}
	r, v, err := w.view(ctx, target, index, len(src))
	if err == nil && (v != nil || len(src) == 0) {
		return Request{}, w.PutNotify(ctx, target, index, src, s) // it does not wait
	}
	var inner fabric.Request
	if err == nil {
		flag := w.flag(s)
		if w.lent != nil {
			flag.In = w.remotes[target].Load()
		}
		data := fabric.Part{At: w.layout.offset(index), Mem: element.Bytes(src)}
		inner, err = r.Start(ctx, &fabric.Put{Body: data, Tell: fabric.TellByFlag, Flag: flag, Lent: true})
	}
	return w.request("StartPutNotify", target, index, len(src), inner, err)
}

// Until is the condition of a wait for slots of this rank: any one of them meets it, or
// all do. [Elements] is the same for elements.
type Until struct {
	Slots     []int // at least one
	Condition Condition
	Value     uint64
	Values    []uint64 // if any: compared with Slots one by one, instead of Value
	All       bool
	// Signed compares as int64: a slot from which signals subtracted may hold less than 0.
	Signed bool
	// From are the ranks of the team for which the wait is. It ends early when one of them is
	// gone, or when the job ends, but not when other ranks are gone. Without From it ends
	// early when any rank of the team is gone. So a server outlives its clients.
	//
	// It also ends early once all of them, without From all other ranks, have returned from
	// their bodies: with a runtime.RankError of kind runtime.ErrClosed, some tenths of a
	// second after it began at the earliest. Their puts have arrived by then, apart from those
	// through a queue that was not flushed. A wait for signals of this rank's own program
	// names this rank, too, and outlives all others.
	From []int
}

// WaitNotify waits until this rank's slots meet u. It returns the first of
// u.Slots that meets the condition (with All, the last, since all do) and its
// value. The slots keep their values: ResetNotify changes them. It ends early
// when a rank of the team, or of u.From, is gone, or once all have returned. Kind: local.
func (w *Window[T]) WaitNotify(ctx context.Context, u Until) (slot int, value uint64, err error) {
	if value, ok := w.soon(&u); ok {
		return u.Slots[0], value, nil
	}
	var i int
	if u.Signed {
		var v int64
		signed := w.signedSlots(&u)
		i, v, err = signed.wait(ctx, w.core, "WaitNotify")
		value = uint64(v)
	} else {
		unsigned := w.slots(&u)
		i, value, err = unsigned.wait(ctx, w.core, "WaitNotify")
	}
	if err != nil {
		return 0, 0, err
	}
	return u.Slots[i], value, nil
}

// TestNotify is WaitNotify without the wait: ok reports whether the slots meet u
// now. It makes progress. A program that calls it in a loop keeps a core from the rank for which it
// waits: call [Window.WaitNotify]. Kind: local.
func (w *Window[T]) TestNotify(u Until) (slot int, value uint64, ok bool, err error) {
	var i int
	if u.Signed {
		var v int64
		signed := w.signedSlots(&u)
		i, v, ok, err = signed.test(w.core, "TestNotify")
		value = uint64(v)
	} else {
		unsigned := w.slots(&u)
		i, value, ok, err = unsigned.test(w.core, "TestNotify")
	}
	if err != nil {
		return 0, 0, false, err
	}
	return u.Slots[i], value, ok, nil
}

// soon looks whether a single slot meets u. Where members map each other's memory and have a core each,
// it then polls for as long as a message takes: most waits end soon. It allocates nothing.
func (c *core) soon(u *Until) (value uint64, ok bool) {
	if len(u.Slots) != 1 || uint(u.Slots[0]) >= uint(c.layout.slots) || u.Signed || u.Values != nil ||
		len(u.From) > 0 || u.Condition >= conditions || c.freed.Load() {
		return 0, false
	}
	word := c.word(c.layout.slot(u.Slots[0]))
	value = word.Load()
	if !meets(u.Condition, value, u.Value) && c.team.Mapped && !c.team.Crowded() && wait.Glance(word, value) {
		value = word.Load()
	}
	return value, meets(u.Condition, value, u.Value)
}

// slots returns the slots for which WaitNotify waits.
func (c *core) slots(u *Until) wanted[uint64] {
	return wanted[uint64]{slots: true, mem: c.slotBytes(), limit: c.layout.slots,
		at: u.Slots, condition: u.Condition, value: u.Value, values: u.Values, all: u.All, from: u.From}
}

// signedSlots is slots for values that are compared as signed numbers.
func (c *core) signedSlots(u *Until) wanted[int64] {
	var values []int64
	if u.Values != nil {
		values = element.View[int64](element.Bytes(u.Values), len(u.Values))
	}
	return wanted[int64]{slots: true, mem: c.slotBytes(), limit: c.layout.slots,
		at: u.Slots, condition: u.Condition, value: int64(u.Value), values: values, all: u.All, from: u.From}
}

// slotBytes returns this rank's slots, none in memory that another rank attached.
func (c *core) slotBytes() []byte { return c.block.Bytes[min(c.layout.slot0, len(c.block.Bytes)):] }

// Slot returns the value of this rank's slot. A caller that sees the value of a signal sees the
// data ahead of the signal, as behind TestNotify. Slot makes no progress: on providers that need
// it, a loop calls TestNotify. ErrRange: there is no such slot. Kind: local.
func (w *Window[T]) Slot(slot int) (uint64, error) {
	switch {
	case w.freed.Load():
		return 0, w.fail("Slot", ErrFreed)
	case uint(slot) >= uint(w.layout.slots):
		return 0, w.failSlot("Slot", w.team.Rank, slot, ErrRange)
	}
	return atomics.Word64(w.block.Bytes[w.layout.slot(slot):]).Load(), nil
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

// failSlot returns the error of a slot that is out of range.
func (c *core) failSlot(op string, target, slot int, err error) error {
	return &OpError{Op: op, Window: c.name, Rank: c.team.Rank, Target: target, Index: slot, Count: 1,
		Limit: c.layout.slots, Err: fmt.Errorf("notification slot %d: %w [0, %d)", slot, err, c.layout.slots)}
}
