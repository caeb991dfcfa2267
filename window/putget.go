package window

import (
	"context"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/bulk"
	"github.com/gopgas/gopgas/internal/element"
)

// Put stores src at the target from index on. It returns at local completion: the
// caller may change src. Flush waits for the target's memory. Kind: one-sided.
func (w *Window[T]) Put(ctx context.Context, target, index int, src []T) error {
	if v := w.mapped(target); v != nil && index >= 0 && index <= len(v.mem)-len(src) {
		v.count(len(src))
		if len(src) < bulk.Long/element.Size[T]() {
			copy(v.mem[index:], src)
		} else {
			storeLong(v.mem[index:], src)
		}
		return nil
	}
	return w.put(ctx, target, index, src)
}

// put is Put where its short way ends: the target is not mapped or not reached yet, or an argument is wrong.
func (w *Window[T]) put(ctx context.Context, target, index int, src []T) error {
	r, v, err := w.reachView(ctx, target, index, len(src))
	switch {
	case err != nil || len(src) == 0:
	case v != nil:
		v.count(len(src))
		storeLong(v.mem[index:], src)
	default:
		err = r.Write(ctx, w.layout.offset(index), element.Bytes(src))
	}
	return w.failAt("Put", target, index, len(src), err)
}

// Get fills dst from the target's elements from index on. dst is filled if Get
// returns nil. The caller owns dst again even if Get returns an error. Kind:
// one-sided.
func (w *Window[T]) Get(ctx context.Context, target, index int, dst []T) error {
	if v := w.mapped(target); v != nil && index >= 0 && index <= len(v.mem)-len(dst) {
		v.count(len(dst))
		if len(dst) < bulk.Long/element.Size[T]() {
			copy(dst, v.mem[index:])
		} else {
			loadLong(dst, v.mem[index:])
		}
		atomics.AcquireRelease() // gets of one number are in order
		return nil
	}
	return w.get(ctx, target, index, dst)
}

// get is Get where its short way ends, as put is.
func (w *Window[T]) get(ctx context.Context, target, index int, dst []T) error {
	r, v, err := w.reachView(ctx, target, index, len(dst))
	switch {
	case err != nil || len(dst) == 0:
	case v != nil:
		v.count(len(dst))
		loadLong(dst, v.mem[index:])
		atomics.AcquireRelease() // as in Get
	default:
		err = r.Read(ctx, w.layout.offset(index), element.Bytes(dst))
	}
	return w.failAt("Get", target, index, len(dst), err)
}

// PutValue stores v at the target's element index. It is Put of one element
// without a slice to keep. Kind: one-sided.
func (w *Window[T]) PutValue(ctx context.Context, target, index int, v T) error {
	if m := w.mapped(target); m != nil && uint(index) < uint(len(m.mem)) {
		m.count(1)
		m.mem[index] = v
		return nil
	}
	one := w.scratch.Get().(*[1]T)
	one[0] = v
	err := w.put(ctx, target, index, one[:])
	w.scratch.Put(one)
	return err
}

// GetValue returns the target's element index. A program that calls it in a loop keeps a core from
// the rank for which it waits. Have that rank put into an element of this rank, and call
// [WaitUntil]. Kind: one-sided.
func (w *Window[T]) GetValue(ctx context.Context, target, index int) (T, error) {
	if m := w.mapped(target); m != nil && uint(index) < uint(len(m.mem)) {
		m.count(1)
		one := m.mem[index]
		atomics.AcquireRelease() // as in Get
		return one, nil
	}
	one := w.scratch.Get().(*[1]T)
	*one = [1]T{} // the result if there is none
	err := w.get(ctx, target, index, one[:])
	v := one[0]
	w.scratch.Put(one)
	return v, err
}
