package collectives

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// A Buffer is memory in the rank's heap. Members that map each other's memory
// read and write it in place, so that long calls on buffers, or parts of them,
// copy nothing.
type Buffer[T any] struct {
	core *buffer
	mem  []T
}

// A buffer is a Buffer without its element type.
type buffer struct {
	team   *team.Team
	block  arena.Block
	region *fabric.Region
	once   sync.Once
	freed  atomic.Bool
	err    error
}

// Alloc returns a buffer of n elements, which are zero. ErrExhausted: the heap has
// no room. Kind: local.
func Alloc[T any](t *runtime.Team, n int) (*Buffer[T], error) {
	g, err := groupOf(t)
	if err != nil {
		return nil, &OpError{Op: "Alloc", Team: t.Name(), Rank: t.Rank(), Err: err}
	}
	b, err := allocate[T](g, n)
	if err != nil {
		return nil, &OpError{Op: "Alloc", Team: t.Name(), Rank: t.Rank(), Err: err}
	}
	return b, nil
}

// allocate takes memory of the heap and registers it. It is local: other members find the region
// when they use it.
func allocate[T any](g *group, n int) (*Buffer[T], error) {
	if _, err := element.Describe[T](); err != nil {
		return nil, err
	}
	size := element.Size[T]()
	if n < 0 || n > math.MaxInt/size {
		return nil, fmt.Errorf("%d elements of %d bytes: %w", n, size, ErrRange)
	}
	b := &buffer{team: g.team}
	var err error
	if b.block, err = g.team.Arena().Alloc(max(1, n) * size); err != nil {
		return nil, err
	}
	// Other members find the region by its number; the name is for errors.
	name := g.team.Name + "/buffer" + strconv.FormatUint(g.buffers.Add(1), 10)
	if b.region, err = g.team.Register(context.Background(), name, b.block.Memory); err != nil {
		_ = b.free() // no member knows the memory
		return nil, err
	}
	return &Buffer[T]{b, element.View[T](b.block.Bytes, n)[:n:n]}, nil
}

// Mem returns the buffer's elements, nil after Free. No call may use a slice that was
// taken before Free: its memory then belongs to another owner. Kind: local.
func (b *Buffer[T]) Mem() []T {
	if b == nil || b.core == nil || b.core.freed.Load() {
		return nil
	}
	return b.mem
}

// Free gives the memory back. Precondition: no call uses it any more, at any member. A
// member may return from a call while others still read its memory. So make a call in which
// all members wait for all between the last call on the buffer and Free. Such calls are
// Barrier, and AllReduce, AllGather, AllToAll and ReduceScatter of at least one element. A
// call with a root, a scan, or a call along a graph is not enough. The second Free does
// nothing. Kind: local.
func (b *Buffer[T]) Free() error {
	if b == nil || b.core == nil {
		return nil // the first was never made
	}
	return b.core.free()
}

// free gives the memory back, once. Later calls return the first one's error.
func (b *buffer) free() error {
	b.once.Do(func() {
		b.freed.Store(true)
		b.err = b.team.GiveBack(b.region, b.block)
	})
	return b.err
}
