package window

import (
	"context"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/mutant"
)

// Elements is the condition of a wait for elements of this rank: any one of them meets it,
// or all do. [Until] is the same for slots. Comparisons are those of T: signed numbers may
// be less than 0, and no number is equal to NaN.
type Elements[T Number] struct {
	At        []int // indices, at least one
	Condition Condition
	Value     T
	Values    []T // if any: compared with At one by one, instead of Value
	All       bool
	// From are the ranks of the team for which the wait is; see [Until].
	From []int
}

// WaitUntil waits until this rank's elements meet u. It returns the index of the first of
// u.At that meets the condition (with All, of the last, since all do) and its value. It ends
// early when a rank of the team, or of u.From, is gone, once all have returned, or when the
// window is freed.
//
// A store of any rank to the elements ends the wait. An atomic, a notified put, a flush or a fence
// of the origin wakes this rank at once. So does each put over tcp. This rank finds other stores
// when it looks again. Such are a put to mapped memory without a flush, a put by an RDMA device,
// and a store of this rank's program to Local. It looks again after 8 ms at most, which takes about
// two percent of a core. Kind: local.
func WaitUntil[T Number](ctx context.Context, w *Window[T], u Elements[T]) (index int, value T, err error) {
	e := wantedOf(w, &u)
	i, value, err := e.wait(ctx, w.core, "WaitUntil")
	if err != nil {
		return 0, value, err
	}
	return u.At[i], value, nil
}

// TestUntil is WaitUntil without the wait: ok reports whether the elements meet u now. It
// makes progress. A program that calls it in a loop keeps a core from the rank for which it waits:
// call WaitUntil. Kind: local.
func TestUntil[T Number](w *Window[T], u Elements[T]) (index int, value T, ok bool, err error) {
	e := wantedOf(w, &u)
	i, value, ok, err := e.test(w.core, "TestUntil")
	if err != nil {
		return 0, value, false, err
	}
	return u.At[i], value, ok, nil
}

// WaitSome waits as WaitUntil does. It appends to met the indices of all elements that meet u, at
// least one, in the order of u.At. It returns the extended slice. Kind: local.
func WaitSome[T Number](ctx context.Context, w *Window[T], u Elements[T], met []int) ([]int, error) {
	e := wantedOf(w, &u)
	first, _, err := e.wait(ctx, w.core, "WaitSome")
	if err != nil {
		return met, err
	}
	return e.appendMet(met, first), nil
}

// TestSome is WaitSome without the wait: it may append nothing. It makes progress. Kind:
// local.
func TestSome[T Number](w *Window[T], u Elements[T], met []int) ([]int, error) {
	e := wantedOf(w, &u)
	first, _, ok, err := e.test(w.core, "TestSome")
	if err != nil || !ok {
		return met, err
	}
	return e.appendMet(met, first), nil
}

// wantedOf returns the elements for which WaitUntil waits.
func wantedOf[T Number](w *Window[T], u *Elements[T]) wanted[T] {
	return wanted[T]{mem: element.Bytes(w.local), limit: w.layout.elems,
		at: u.At, condition: u.Condition, value: u.Value, values: u.Values, all: u.All, from: u.From}
}

// appendMet appends the places that meet the condition to met. The one at position first
// has met it, and counts even if another store has changed it.
func (u *wanted[V]) appendMet(met []int, first int) []int {
	for i, at := range u.at {
		if u.all || i == first || u.met(i, u.load(at)) {
			met = append(met, at)
		}
	}
	return met
}

// Mapped memory changes without a ring: a put there is a store and nothing else. A goroutine
// that waits for elements counts itself in the word watch. An origin whose store is behind a
// full barrier loads the word, and rings if it is not 0:
//
//	origin                         goroutine that waits
//	store the element              watch++
//	full barrier (flush, atomic)   look; if the condition is met: leave
//	if watch > 0: ring             sleep
//
// One of the two sees the other's store. A put costs nothing more. Without a flush behind it
// only the next look of the waiting goroutine finds it ([team.Team.AwaitFrom]).

// awaitElements is Await for elements of this rank.
func (c *core) awaitElements(ctx context.Context, from []int, ready func() bool) error {
	c.watching.Add(1) // pairs with freed: either Free or this goroutine sees the other
	defer func() {
		if c.watching.Add(-1) == 0 && c.freed.Load() {
			c.team.Bell().Ring()
		}
	}()
	if c.freed.Load() {
		return ErrFreed
	}
	watch := c.word(c.layout.watch)
	watch.Add(1)
	defer watch.Add(^uint64(0))
	return c.team.AwaitFrom(ctx, from, true, ready)
}

// watch returns the word watch of a target, nil if its memory is not mapped.
func (c *core) watch(r *fabric.Remote) *atomic.Uint64 {
	if r.Mem == nil {
		return nil
	}
	return atomics.Word64(r.Mem[c.layout.watch:])
}

// tell wakes goroutines of a target that wait for elements. The caller has made a full
// barrier since it stored them.
func tell(watch *atomic.Uint64, r *fabric.Remote) {
	if watch != nil && watch.Load() != 0 && !mutant.StoreWithoutRing {
		r.Peer.Bell().Ring()
	}
}
