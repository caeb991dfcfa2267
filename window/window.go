package window

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/runtime"
)

// A Window is memory of n elements at every rank of a team. Its one-sided
// methods may be called from any goroutine.
type Window[T any] struct {
	*core
	outer   *runtime.Team
	local   []T
	views   []atomic.Pointer[view[T]] // by target, once it was reached and can be mapped
	scratch sync.Pool                 // of *[1]T: values on their way through a queue
}

// A view is a target's memory as this process maps it.
type view[T any] struct {
	mem    []T
	remote *fabric.Remote
	watch  *atomic.Uint64   // goroutines of the target that wait for elements
	stats  *fabric.Counters // nil unless this job counts mapped operations
}

// Null is a target that has no memory. One-sided operations on it check nothing more, do
// nothing and return zero values, as those on MPI_PROC_NULL: a rank at the edge of a grid needs
// no branch. It has no lock.
const Null = math.MinInt32

// Allocate makes a window of n elements, zeroed, at every rank of t. T has a
// fixed size and holds no pointers. All ranks give the same T, n and options;
// otherwise all get runtime.ErrMismatch. Kind: collective.
func Allocate[T any](ctx context.Context, t *runtime.Team, n int, opts ...Option) (*Window[T], error) {
	return allocate[T](ctx, t, n, opts)
}

// AllocateV is Allocate where each rank gives the number of its own elements, which may be 0.
// Kind: collective.
func AllocateV[T any](ctx context.Context, t *runtime.Team, n int, opts ...Option) (*Window[T], error) {
	return allocate[T](ctx, t, n, append(opts[:len(opts):len(opts)], varied))
}

// allocate makes a window of all members. An element type with pointers is an error at all of them,
// found by the exchange of cards.
func allocate[T any](ctx context.Context, t *runtime.Team, n int, opts []Option) (*Window[T], error) {
	typ, bad := element.Describe[T]()
	c, err := newCore(ctx, t, typ, element.Size[T](), n, bad, opts)
	if err != nil {
		return nil, err
	}
	w := newWindow[T](c, t)
	c.parts.whole = w
	c.team.SetOwner(c.region, w)
	return w, nil
}

// newWindow returns the window or the part that c describes.
func newWindow[T any](c *core, t *runtime.Team) *Window[T] {
	w := &Window[T]{core: c, outer: t, local: elementsIn[T](c, c.own(), c.team.Rank)}
	w.views = make([]atomic.Pointer[view[T]], len(c.remotes))
	w.scratch.New = func() any { return new([1]T) }
	return w
}

// Local returns this rank's own elements. Read and write them like any slice, but
// not while another rank accesses them. After Free the slice reads garbage. Kind:
// local.
func (w *Window[T]) Local() []T { return w.local }

// Shared returns the target's elements themselves where its memory is mapped
// here, else [ErrNotShared]. Null has none. Kind: local after the first access to the target.
func (w *Window[T]) Shared(ctx context.Context, target int) ([]T, error) {
	r, err := w.reach(ctx, target, 0, 0)
	if err == nil && r.Mem == nil {
		err = ErrNotShared
	}
	if err != nil {
		return nil, w.failAt("Shared", target, -1, 0, err)
	}
	return w.elements(r, target), nil
}

// elements returns the elements of a target that is mapped.
func (w *Window[T]) elements(r *fabric.Remote, target int) []T {
	return elementsIn[T](w.core, r.Mem, target)
}

// elementsIn returns the elements of a target, whose region is mem. A part may begin behind
// the region of a target that has none of its elements.
func elementsIn[T any](c *core, mem []byte, target int) []T {
	if c.array != nil {
		return element.View[T](c.array.of(c, target), c.length(target))
	}
	return element.View[T](mem[min(c.layout.elem0, len(mem)):], c.length(target))
}

// Len returns the number of elements at the target, 0 if the team has no such rank. Kind:
// local.
func (w *Window[T]) Len(target int) int {
	if uint(target) >= uint(len(w.remotes)) {
		return 0
	}
	return w.length(target)
}

// Team returns the team whose ranks are the window's targets. Kind: local.
func (w *Window[T]) Team() *runtime.Team { return w.outer }

// Name returns the window's name as error messages give it. Kind: local.
func (w *Window[T]) Name() string { return w.name }

// mapped returns the view of a target, nil if there is none (yet).
func (w *Window[T]) mapped(target int) *view[T] {
	if uint(target) >= uint(len(w.views)) {
		return nil
	}
	return w.views[target].Load()
}

// unmap has later operations return ErrFreed.
func (w *Window[T]) unmap() {
	for i := range w.views {
		w.views[i].Store(nil)
	}
}

// reachView is reach for an operation whose fast path found no view. It makes the
// view for later operations. With a view it returns the memory of the words ahead of the elements.
func (w *Window[T]) reachView(ctx context.Context, target, index, count int) (*fabric.Remote, *view[T], error) {
	r, err := w.reach(ctx, target, index, count)
	if err != nil || r.Mem == nil {
		return r, nil, err
	}
	v := &view[T]{mem: w.elements(r, target), remote: w.remotes[target].Load()}
	v.watch = w.watch(v.remote)
	if w.team.Counting() {
		v.stats = &v.remote.Peer.Stats
	}
	w.views[target].Store(v)
	if w.freed.Load() {
		w.views[target].Store(nil)
		return nil, nil, ErrFreed
	}
	return v.remote, v, nil
}

// view is reachView that uses an existing view.
func (w *Window[T]) view(ctx context.Context, target, index, count int) (*fabric.Remote, *view[T], error) {
	if v := w.mapped(target); v != nil && index >= 0 && count >= 0 && index <= len(v.mem)-count {
		return v.remote, v, nil
	}
	return w.reachView(ctx, target, index, count)
}

// count records an operation on n elements if this job counts mapped operations.
func (v *view[T]) count(n int) {
	if v.stats != nil {
		v.stats.Count(n * element.Size[T]())
	}
}
