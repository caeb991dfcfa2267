package window

import (
	"context"
	"fmt"
	"slices"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// AllocateShared makes a window whose elements lie one behind the other in one array, which all
// ranks of t map. First come those of rank 0, then those of rank 1, and so on. Each rank gives
// the number of its own elements, which may be 0. [Window.Whole] returns the array. Index 0 of
// a target is the target's first element, as in every window, and all operations apply.
//
// The memory comes from the heap of t's rank 0. A page occupies memory of the NUMA node that the
// system chooses for rank 0. A rank cannot map the memory of all others if t spans hosts or the
// provider does not map memory. Then all ranks get [ErrNotShared]. Teams of
// [runtime.Team.SplitHost] lie within a host. Kind: collective.
func AllocateShared[T any](ctx context.Context, t *runtime.Team, n int, opts ...Option) (*Window[T], error) {
	return allocate[T](ctx, t, n, append(opts[:len(opts):len(opts)], varied, shared))
}

// Whole returns the elements of all ranks, in the order of ranks, if [AllocateShared] made w,
// else [ErrNotShared]. Loads and stores follow the rules of [Window.Local]. Kind: local.
func (w *Window[T]) Whole() ([]T, error) {
	switch {
	case w.freed.Load():
		return nil, w.fail("Whole", ErrFreed)
	case w.array == nil:
		return nil, w.fail("Whole", fmt.Errorf("%w: AllocateShared makes windows in one array", ErrNotShared))
	case w.parts.whole != any(w):
		return nil, w.fail("Whole", ErrPart)
	}
	return element.View[T](w.array.mem, w.array.starts[len(w.remotes)]/w.layout.size), nil
}

// An array holds the elements of all ranks, in memory of rank 0.
type array struct {
	mem    []byte
	starts []int // bytes ahead of each target's elements, and of the end
	elem0  int   // of the window's layout
	block  arena.Block
	mine   *fabric.Region // at rank 0
}

// of returns a target's elements from that on which c begins.
func (a *array) of(c *core, target int) []byte {
	return a.mem[min(a.starts[target]+c.layout.elem0-a.elem0, len(a.mem)):]
}

// share makes the array of a window together with the team's other ranks, which agree on its
// lengths.
func (c *core) share(ctx context.Context) error {
	a := &array{elem0: c.layout.elem0, starts: make([]int, 1, len(c.remotes)+1)}
	for target := range c.remotes {
		a.starts = append(a.starts, a.starts[target]+c.length(target)*c.layout.size)
	}
	c.array = a
	name := c.region + "/elements"
	var err error
	if c.team.Rank == 0 {
		err = c.makeArray(ctx, name)
	}
	if err := c.agree(ctx, refusalCard(err), err); err != nil {
		return err
	}
	if c.team.Rank != 0 {
		err = c.mapArray(ctx, name)
	}
	return c.agree(ctx, refusalCard(err), err)
}

// makeArray allocates and publishes the array, at rank 0.
func (c *core) makeArray(ctx context.Context, name string) (err error) {
	if c.array.block, err = c.team.Arena().AllocAligned(line(max(1, c.array.starts[len(c.remotes)])), c.options.align); err != nil {
		return err
	}
	c.array.mem = c.array.block.Bytes
	c.array.mine, err = c.team.Register(ctx, name, c.array.block.Memory)
	return err
}

// mapArray maps the array of rank 0.
func (c *core) mapArray(ctx context.Context, name string) error {
	r, err := c.team.Resolve(ctx, c.team.Members[0], name)
	if err == nil && r.Mem == nil {
		err = ErrNotShared
	}
	if err == nil {
		c.array.mem = r.Mem
	}
	return err
}

// mappable returns ErrNotShared unless all ranks of the team map each other's memory.
func mappable(t *team.Team) error {
	if t.Mapped {
		return nil
	}
	if slices.Max(t.Hosts) != slices.Min(t.Hosts) {
		return fmt.Errorf("%w: team %s spans hosts; Team.SplitHost makes one for each", ErrNotShared, t.Name)
	}
	return fmt.Errorf("%w: provider %q does not map the memory of team %s", ErrNotShared, t.Path, t.Name)
}
