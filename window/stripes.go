package window

import (
	"context"
	"encoding/binary"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/wait"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Elements that no instruction updates whole have locks at their target. The place of an element
// chooses one of a few, a stripe of two cache lines:
//
//	 0  lock: 0, or the rank that holds it, counted from 1
//	 8  undo: 0, or the place and the size of the element that is being stored
//	64  the earlier value of that element
//
// An origin, mapped or not, goes through the steps of one update in this order:
//
//	lock (compare and swap) - load the element - store its value at 64 - set undo -
//	store the element - clear undo - clear lock
//
// A rank that finds the lock of a dead rank takes it over. If undo is set, the element may hold a
// mixture: the rank stores the earlier value, and then clears undo. If that rank dies as well, the next
// one does the same. So the element holds the old or the new value.
const (
	stripes    = 16
	stripeSize = 2 * lineSize
	undoAt     = 8
	earlierAt  = lineSize
	// maxWide is the size of the widest element that has atomics.
	maxWide = lineSize
)

// stripe returns the stripe of the element at a place. The sum spreads wide elements over all stripes.
func (l *layout) stripe(place int) int {
	return l.stripes + (place/8+place/maxWide)%stripes*stripeSize
}

// A wide is one update of an element under its lock. updateWide makes it, for one goroutine.
type wide struct {
	*core
	words  *fabric.Remote // has the stripe
	body   *fabric.Remote // has the element
	target int
	place  int              // of the element in body
	stripe int              // offset of the stripe
	buf    [2][maxWide]byte // the earlier value, and the new one
}

// updateWide applies op to an element under its lock. If ctx ends while it waits for an answer, the
// update goes on.
func (w *Window[T]) updateWide(ctx context.Context, body *fabric.Remote, target, index int, operand T, op Op[T]) (T, error) {
	e := &wide{core: w.core, words: w.remotes[target].Load(), body: body, target: target, place: w.layout.offset(index)}
	e.stripe = w.layout.stripe(e.place)
	var earlier T
	under := w.underWay()
	under.Add(1)
	err := w.within(ctx, e.words, func() error {
		defer under.end(w.team.Bell())
		if err := e.lock(ctx); err != nil {
			return err
		}
		return e.update(context.WithoutCancel(ctx), func(value []byte) bool {
			copy(element.Bytes(element.Slice(&earlier, 1)), value)
			if op.loads {
				return false
			}
			next := op.combine(earlier, operand)
			copy(value, element.Bytes(element.Slice(&next, 1)))
			return true
		})
	}, func() {})
	if err != nil {
		return operand, err // earlier may still change
	}
	return earlier, nil
}

// lock takes the lock, from a dead rank if need be.
func (e *wide) lock(ctx context.Context) error {
	me := uint64(e.team.Rank + 1)
	for {
		seen, err := e.atStripe(ctx, 0, driver.AtomicCmpSwap, me, 0)
		if err != nil || seen == 0 {
			return err
		}
		if e.orphaned(seen) {
			if err := e.sever(ctx, seen); err != nil {
				return err
			}
			now, err := e.atStripe(ctx, 0, driver.AtomicCmpSwap, me, seen)
			if err == nil && now == seen {
				err = e.recover(context.WithoutCancel(ctx))
			}
			if err != nil || now == seen {
				return err
			}
		}
		if err := e.pause(ctx, seen); err != nil {
			return err
		}
	}
}

// orphaned reports whether a rank is dead that holds the lock.
func (e *wide) orphaned(holder uint64) bool {
	return holder <= uint64(len(e.team.Members)) && e.team.Gone(e.team.Members[holder-1:holder]) != nil
}

// sever has the target drop the requests of the dead holder that it has not applied yet. They
// would otherwise release the lock of a later holder. The stores of a dead rank to mapped memory have
// all taken effect.
func (e *wide) sever(ctx context.Context, holder uint64) error {
	if e.words.Mem != nil {
		return nil
	}
	return e.words.Peer.Sever(ctx, e.team.Members[holder-1])
}

// pause waits until the lock is worth another try. Where it is not mapped, the try itself takes
// its time.
func (e *wide) pause(ctx context.Context, holder uint64) error {
	if e.words.Mem == nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return nil
	}
	word := atomics.Word64(e.words.Mem[e.stripe:])
	return e.team.WaitWith(ctx, wait.Manner{Longest: wait.LongestPause}, func() bool { return word.Load() != holder || e.orphaned(holder) || e.ended() })
}

// atStripe carries out an atomic on a word of the stripe. It is not given up half-way.
func (e *wide) atStripe(ctx context.Context, word int, op driver.AtomicOp, operand, compare uint64) (uint64, error) {
	if e.ended() {
		return 0, ErrFreed
	}
	return e.at(context.WithoutCancel(ctx), e.words, e.stripe+word, op, operand, compare)
}

// recover undoes the update that the dead holder of the lock had begun.
func (e *wide) recover(ctx context.Context) error {
	undo, err := e.atStripe(ctx, undoAt, driver.AtomicLoad, 0, 0)
	if err != nil || undo == 0 {
		return err
	}
	place, n := int(undo>>sizeBits), int(undo&(1<<sizeBits-1))
	value := e.buf[0][:min(n, maxWide)]
	mem := e.bytes(e.body, e.target, place, len(value))
	if mem != nil {
		copy(mem, e.words.Mem[e.stripe+earlierAt:][:len(value)])
		atomics.Word64(e.words.Mem[e.stripe+undoAt:]).Store(0)
		return nil
	}
	if err := e.words.Read(ctx, e.stripe+earlierAt, value); err != nil {
		return err
	}
	return e.store(ctx, place, value)
}

const sizeBits = 7

// update has change replace the element's value, unless change returns false. Precondition: e is locked. It
// releases the lock.
func (e *wide) update(ctx context.Context, change func(value []byte) bool) (err error) {
	n := e.layout.size
	mem := e.bytes(e.body, e.target, e.place, n)
	earlier, value := e.buf[0][:n], e.buf[1][:n]
	defer func() {
		if release := e.words.PostFlag(ctx, fabric.Flag{Offset: e.stripe}); err == nil {
			err = release
		}
	}()
	if mem != nil {
		copy(earlier, mem)
	} else if err := e.body.Read(ctx, e.place, earlier); err != nil {
		return err
	}
	copy(value, earlier)
	if !change(value) {
		return nil
	}
	undo := uint64(e.place)<<sizeBits | uint64(n)
	if mem != nil {
		words := e.words.Mem[e.stripe:]
		copy(words[earlierAt:], earlier)
		atomics.Word64(words[undoAt:]).Swap(undo)
		storeWords(mem, value)
		atomics.Word64(words[undoAt:]).Swap(0)
		return nil
	}
	if err := e.words.Put(ctx, &fabric.Put{Body: fabric.Part{At: e.stripe + earlierAt, Mem: earlier}, Tell: fabric.TellByFlag,
		Flag: fabric.Flag{Offset: e.stripe + undoAt, Value: undo}}); err != nil {
		return err
	}
	return e.store(ctx, e.place, value)
}

// store stores an element that is not mapped, and then clears undo.
func (e *wide) store(ctx context.Context, place int, value []byte) error {
	flag := fabric.Flag{Offset: e.stripe + undoAt}
	if e.words != e.body {
		flag.In = e.words
	}
	return e.body.Put(ctx, &fabric.Put{Body: fabric.Part{At: place, Mem: value}, Tell: fabric.TellByFlag, Flag: flag})
}

// storeWords stores an element in order behind all earlier stores, by words where it has whole ones.
func storeWords(mem, value []byte) {
	if len(mem)%8 != 0 || element.Address(mem)%8 != 0 {
		copy(mem, value)
		return
	}
	for i := 0; i < len(mem); i += 8 {
		atomics.Word64(mem[i:]).Store(binary.NativeEndian.Uint64(value[i:]))
	}
}
