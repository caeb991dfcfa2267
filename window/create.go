package window

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
)

// Create makes a window of memory that the program already has: MPI_Win_create. mem is any slice,
// of the heap, of a global variable or of an array that the program declared in a function. Each rank
// gives its own, whose length may differ and be 0. T has a fixed size and holds no pointers. All ranks
// give the same T and options. [WithAlignment] has no effect, and [On] is [ErrLent]: mem lies where it lies.
//
// The program lends mem until [Window.Free] returns nil: until then the memory stays where it is, and
// the rules for [Window.Local] hold for it. The caller may drop the slice. After an error of Free other ranks
// may use the memory until [runtime.Team.Free]. Two windows may have the same memory. The first and
// last bytes of mem may share a word of 8 bytes with other variables. An atomic on an element of fewer
// bytes leaves their values as they are; where devices apply atomics, the program must not store to them meanwhile.
// Atomics on complex numbers need memory at a multiple of their size at all ranks: [ErrAlignment].
//
// Every operation works as on other windows. Ranks of one process reach mem directly, and others over
// tcp and RDMA devices, as always. Another process of the host cannot map it. There the
// system copies more than 512 bytes between the processes, if it permits that. All else goes by a goroutine of
// the target, which a sleeping program does not hold up: a put takes microseconds in place of
// nanoseconds. Memory of [Allocate] is faster. [Window.Realloc] returns [ErrLent]. Kind: collective.
func Create[T any](ctx context.Context, t *runtime.Team, mem []T, opts ...Option) (*Window[T], error) {
	l := &lent{mem: element.Bytes(mem)}
	l.least = l.align()
	own := func(o *options) error {
		if o.lent != nil {
			return fmt.Errorf("%w: On has no effect on it", ErrLent)
		}
		o.lent = l
		return nil
	}
	return allocate[T](ctx, t, len(mem), append(opts[:len(opts):len(opts)], varied, own))
}

// lent is memory of this rank's program, or memory that On gave, that a window has as its elements. It has a region of its own,
// behind that of the window's words. Where a rank cannot map a target's elements, a queue pair
// carries its operations on the words, too, so that they keep their order.
type lent struct {
	mem   []byte
	least int            // alignment of the memory at the rank with the least
	whole *fabric.Region // the words of 8 bytes in which mem lies
	mine  *fabric.Region // mem in them
	// On has said where the elements lie: in piece, which is block's if this rank gave none.
	placed  bool
	bounces bool // peers may reach piece through stages
	piece   driver.Memory
	block   arena.Block
}

// align returns the largest power of two, a page at most, that the address of the memory is a multiple of. No
// memory is aligned to a page, no lent memory to 0.
func (l *lent) align() int {
	switch {
	case l == nil:
		return 0
	case len(l.mem) == 0:
		return maxAlign
	}
	return 1 << bits.TrailingZeros(uint(element.Address(l.mem)|maxAlign))
}

// maxAlign is the largest alignment that counts.
const maxAlign = 4096

func (c *core) lentName() string { return c.region + "/elements" }

// registerLent publishes the program's memory.
func (c *core) registerLent(ctx context.Context) (err error) {
	c.layout.elem0 = 0
	c.bodies = make([]atomic.Pointer[fabric.Remote], len(c.remotes))
	l, n := c.lent, len(c.lent.mem)
	mem, offset := l.region()
	register := c.team.Register
	if l.bounces {
		register = c.team.RegisterOrBounce
	}
	if l.whole, err = register(ctx, c.region+"/memory", mem); err != nil {
		return err
	}
	if !l.placed {
		l.whole.Pin()
	}
	l.mine, err = l.whole.Part(c.lentName(), offset, n)
	return err
}

// region returns what the memory is registered as, and where the elements begin there.
func (l *lent) region() (mem driver.Memory, offset int) {
	if l.placed {
		return l.piece, 0
	}
	own := l.mem
	if len(own) == 0 {
		own = make([]byte, lineSize) // devices register no empty memory
	}
	words, offset := element.Words(own)
	return driver.Memory{Kind: driver.KindHeap, Bytes: words, FD: -1}, offset
}

// giveBack withdraws the memory. Other members may still use it if used.
func (l *lent) giveBack(c *core, used bool) error {
	if l == nil {
		return nil
	}
	return errors.Join(c.giveBack(used, l.mine, arena.Block{}), c.giveBack(used, l.whole, l.block))
}

// misplaced returns an error if a target's elements, numbers, do not begin at a multiple of their size, as
// atomics need.
func (c *core) misplaced(target int) error {
	size, at, least := c.layout.size, c.layout.elem0, maxAlign
	switch {
	case c.array != nil:
		at += c.array.starts[target] - c.array.elem0
	case c.lent != nil:
		least = c.lent.least
	}
	if size <= least && at%size == 0 {
		return nil
	}
	return fmt.Errorf("%w: atomics of %d bytes, from byte %d of memory that is aligned to %d bytes", ErrAlignment, size, at, least)
}

// halfAligned reports whether numbers of type T need not begin at a multiple of their size: complex ones.
func halfAligned[T any]() bool { return element.Align[T]() < element.Size[T]() }

// resolveLent finds a target's elements, and returns the memory of the words ahead of them.
func (c *core) resolveLent(ctx context.Context, target int, words *fabric.Remote) (*fabric.Remote, error) {
	body, err := c.team.Resolve(ctx, c.team.Members[target], c.lentName())
	if err == nil && body.Mem == nil && words.Mem != nil {
		words = words.Unmapped()
	}
	if err == nil && c.via != nil {
		body, err = c.via.inner.Remote(ctx, body)
	}
	if err != nil {
		return nil, err
	}
	c.bodies[target].CompareAndSwap(nil, body)
	return words, nil
}

// own returns this rank's memory of the window, from the words ahead of the elements on unless they lie apart.
func (c *core) own() []byte {
	if c.lent != nil {
		return c.lent.mem
	}
	return c.block.Bytes
}
