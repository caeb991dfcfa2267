package window

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Operators that no request of the provider carries out run at the origin, element by element. An element
// of up to 8 bytes is a word, which compare and swap updates. A wider one has a lock: see stripes.go.

// updateEach applies op to elements, one after the other. Accumulates call it for operators of the
// program, and for wide elements. src or old may be nil. With old it returns when all updates are applied.
func (w *Window[T]) updateEach(ctx context.Context, target, index int, src, old []T, op Op[T]) error {
	n, words := max(len(src), len(old)), isScalar[T]() && w.layout.size <= 8
	body, err := w.reach(ctx, target, index, n)
	switch {
	case err != nil:
		return err
	case w.layout.size > maxWide:
		return fmt.Errorf("%w: %d bytes; atomics take %d at most", ErrType, w.layout.size, maxWide)
	case words && w.misplaced(target) != nil:
		return w.misplaced(target)
	}
	for i := range n {
		var operand, earlier T
		if src != nil {
			operand = src[i]
		}
		if words {
			earlier, err = w.updateWord(wait.Context(ctx), body, target, index+i, operand, op)
		} else {
			earlier, err = w.updateWide(wait.Context(ctx), body, target, index+i, operand, op)
		}
		if err != nil {
			return err
		}
		if old != nil {
			old[i] = earlier
		}
	}
	r := w.remotes[target].Load()
	if r.Mem == nil && old != nil {
		return r.Peer.Flush(ctx)
	}
	tell(w.watch(r), r)
	return nil
}

// updateWord applies op to an element of a word: it swaps until no other update came between.
func (w *Window[T]) updateWord(ctx context.Context, body *fabric.Remote, target, index int, operand T, op Op[T]) (T, error) {
	offset := w.layout.offset(index)
	mem := w.bytes(body, target, offset, w.layout.size)
	seen, err := w.wordAt(ctx, body, mem, offset, driver.AtomicLoad, 0, 0)
	for err == nil {
		old := seen
		next := toBits(op.combine(fromBits[T](old), operand))
		if seen, err = w.wordAt(ctx, body, mem, offset, driver.AtomicCmpSwap, next, old); seen == old {
			break
		}
		if err == nil && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
	}
	return fromBits[T](seen), err
}

// wordAt carries out an atomic on an element of a word. mem is nil unless it is mapped.
func (c *core) wordAt(ctx context.Context, body *fabric.Remote, mem []byte, offset int, op driver.AtomicOp, operand, compare uint64) (uint64, error) {
	if mem != nil {
		return atomics.Apply(mem, op, operand, compare), nil
	}
	return body.Fetch(ctx, offset, fabric.Atomic{Op: op, Width: uint8(c.layout.size), Operand: operand, Compare: compare})
}

// bytes returns n bytes of a target's elements, nil if they are not mapped. place counts as in the layout.
func (c *core) bytes(body *fabric.Remote, target, place, n int) []byte {
	if c.array != nil {
		return c.array.mem[c.array.starts[target]+place-c.array.elem0:][:n:n]
	}
	if body.Mem == nil {
		return nil
	}
	return body.Mem[place:][:n:n]
}

// updates counts updates of wide elements that are under way. One whose caller has left holds a
// lock for other ranks, and needs the connection to release it.
type updates struct{ atomic.Int64 }

// end notes that an update of a wide element is over, and wakes Free.
func (u *updates) end(b *wait.Bell) {
	u.Add(-1)
	b.Ring()
}

// await waits until none is under way.
func (u *updates) await(ctx context.Context, f *fabric.Fabric) error {
	if u.Load() == 0 {
		return nil
	}
	if err := f.Wait(ctx, func() bool { return u.Load() == 0 }); err != nil {
		return fmt.Errorf("an update whose context ended is under way: %w", err)
	}
	return nil
}

// underWay returns the count of the updates that end with c's connections.
func (c *core) underWay() *updates {
	if c.via != nil {
		return &c.via.updates
	}
	return &c.segment.updates
}
