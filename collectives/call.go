package collectives

import (
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"slices"

	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/internal/element"
	"github.com/gopgas/gopgas/runtime"
)

// A Call holds a collective and its arguments. [Start] makes the call once, and a plan of
// [Plan] makes it as often as it runs. Each collective has a function that returns its Call,
// such as [AllReduceCall].
type Call struct {
	of         *collective
	commutes   bool
	byProgram  bool // the program wrote the operator, which may take any time
	single     bool // of single elements
	root       int
	count      int // elements that all members agree on, or team.Varied
	size       int // bytes of an element
	typ        reflect.Type
	op         string
	combine    message.Combine
	send, recv []byte
	// The places of all members' blocks in send and recv, for calls with Blocks.
	sendBlocks, recvBlocks Blocks
	graph                  *Graph
	options
}

// Blocks gives the place of each member's block in a slice. The block of rank i has
// Counts[i] elements and begins at element Offsets[i]. If Offsets is nil, the blocks follow
// one another. Blocks do not overlap. Some calls take the same Counts at all members. There
// either all members give Offsets, which may differ, or none does.
type Blocks struct {
	Counts  []int
	Offsets []int
}

// fill sets the fields of a call that all collectives have. T is the type of its elements.
func fill[T any](c *Call, of *collective, root, count int, send, recv []T, opts []Option) {
	c.of, c.root, c.count, c.size, c.typ = of, root, count, element.Size[T](), reflect.TypeFor[T]()
	c.send, c.recv = element.Bytes(send), element.Bytes(recv)
	if len(opts) > 0 {
		c.options = collect(opts)
	}
}

// by sets the operator that combines elements.
func by[T any](c *Call, op *Op[T]) {
	c.op, c.combine, c.commutes, c.byProgram, c.single = op.name, op.f, op.commutes, op.byProgram, op.single
}

// elements returns the number of elements in bytes.
func (c *Call) elements(bytes []byte) int { return len(bytes) / c.size }

// check returns the error of the first wrong argument, at one rank of n members. It looks at
// this rank's arguments only.
func (c *Call) check(rank, n int) error {
	if c.of == nothing {
		return fmt.Errorf("an empty Call: %w", errors.ErrUnsupported)
	}
	if c.size == 0 {
		return fmt.Errorf("%w: %v has no size", ErrType, c.typ)
	}
	if uint(c.root) >= uint(n) {
		return fmt.Errorf("root %d: %w [0, %d)", c.root, runtime.ErrRange, n)
	}
	if c.of.is(combining) && (c.combine == nil || c.op == "") {
		return ErrOp
	}
	return c.checkLengths(rank, n)
}

// checkLengths compares the lengths of this rank's buffers with what its row of the table says. In a
// collective with a root, it checks the root's only.
func (c *Call) checkLengths(rank, n int) error {
	switch {
	case c.of.is(rooted) && rank != c.root:
		return nil
	case c.of.edges != nil:
		return c.checkNeighbors()
	}
	switch c.of.buffers {
	case vectors:
		return c.checkVectors()
	case gathers:
		return c.checkBlocks("output", c.recv, &c.recvBlocks, "input", c.send, rank, n)
	case scatters:
		return c.checkBlocks("input", c.send, &c.sendBlocks, "output", c.recv, rank, n)
	case exchanges:
		return c.checkAllToAll(rank, n)
	}
	return nil
}

// checkVectors checks a collective of one vector, in which output and input may be
// the same.
func (c *Call) checkVectors() error {
	switch {
	case len(c.recv) != len(c.send):
		return lengthError("output", c.elements(c.recv), c.elements(c.send))
	case overlap(c.send, c.recv):
		return ErrOverlap
	}
	return nil
}

// checkBlocks compares the length of the buffer that holds all members' blocks with this
// member's own block. The own block may lie in that buffer, at its place.
func (c *Call) checkBlocks(allName string, all []byte, b *Blocks, oneName string, one []byte, rank, n int) error {
	lo := rank * len(one)
	if c.of.is(varied) {
		if err := b.check(allName, c.elements(all), n); err != nil {
			return err
		}
		if count, want := c.elements(one), b.Counts[rank]; count != want {
			return lengthError(oneName, count, want)
		}
		lo = b.offset(rank) * c.size
	} else if high, want := bits.Mul(uint(len(one)), uint(n)); high != 0 || uint(len(all)) != want {
		return lengthError(allName, c.elements(all), n*c.elements(one))
	}
	if !within(one, all, lo) {
		return ErrOverlap
	}
	return nil
}

// checkAllToAll compares lengths of input and output. This member sends itself as many elements as
// it receives of itself.
func (c *Call) checkAllToAll(rank, n int) error {
	send, recv := c.elements(c.send), c.elements(c.recv)
	switch {
	case c.of.is(varied):
		if err := errors.Join(c.sendBlocks.check("input", send, n), c.recvBlocks.check("output", recv, n)); err != nil {
			return err
		}
		if to, from := c.sendBlocks.Counts[rank], c.recvBlocks.Counts[rank]; to != from {
			return loopError(to, from)
		}
	case send%n != 0:
		return fmt.Errorf("input has %d elements, which are not the same number for each of %d members: %w", send, n, ErrLength)
	case recv != send:
		return lengthError("output", recv, send)
	}
	if send == 0 {
		return nil
	}
	return c.checkApart()
}

// checkApart checks that input and output have no byte in common.
func (c *Call) checkApart() error {
	if overlap(c.send, c.recv) || same(c.send, c.recv) {
		return ErrOverlap
	}
	return nil
}

// loopError returns the error of a member that sends itself another length than it expects.
func loopError(to, from int) error {
	return fmt.Errorf("block of %d elements for this rank itself and of %d from it: %w", to, from, ErrLength)
}

func same(x, y []byte) bool { return len(x) > 0 && len(y) > 0 && &x[0] == &y[0] }

// check checks the blocks of n members in a slice.
func (b *Blocks) check(what string, elements, n int) error {
	if len(b.Counts) != n || b.Offsets != nil && len(b.Offsets) != n {
		return fmt.Errorf("blocks of %s: %d counts and %d offsets for %d members: %w", what, len(b.Counts), len(b.Offsets), n, ErrLength)
	}
	at := 0
	for i, count := range b.Counts {
		if b.Offsets != nil {
			at = b.Offsets[i]
		}
		if count < 0 || at < 0 || at > elements || count > elements-at {
			return fmt.Errorf("block %d of %s: %d elements from %d on of %d: %w", i, what, count, at, elements, ErrLength)
		}
		at += count
	}
	return nil
}

// clone returns a copy, which the program cannot change.
func (b *Blocks) clone() Blocks {
	return Blocks{slices.Clone(b.Counts), slices.Clone(b.Offsets)}
}

// own replaces the checked blocks by copies. A started call uses them while the program may
// change its slices.
func (c *Call) own() {
	c.sendBlocks, c.recvBlocks = c.sendBlocks.clone(), c.recvBlocks.clone()
}

// total returns the number of elements in the blocks.
func (b *Blocks) total() int {
	sum := 0
	for _, count := range b.Counts {
		sum += count
	}
	return sum
}

// offset returns where block i begins.
func (b *Blocks) offset(i int) int {
	if b.Offsets != nil {
		return b.Offsets[i]
	}
	at := 0
	for _, count := range b.Counts[:i] {
		at += count
	}
	return at
}
