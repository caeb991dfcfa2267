package board

import (
	"bytes"
	"context"
	"fmt"
	"slices"
)

// A kind is one of the collectives.
type kind int

const (
	allReduce kind = iota
	reduce
	broadcast
	gather
	gatherV
	scatter
	scatterV
	allGather
	allGatherV
	reduceScatter
	reduceScatterV
	allToAll
	allToAllV
	scan
	exScan
	kinds
)

var kindNames = [kinds]string{"AllReduce", "Reduce", "Broadcast", "Gather", "GatherV", "Scatter", "ScatterV", "AllGather",
	"AllGather of unlike blocks", "ReduceScatter", "ReduceScatter of unlike blocks", "AllToAll", "AllToAllV", "Scan", "ExScan"}

// A call is one collective call of all members.
type call struct {
	kind   kind
	root   int
	elems  int // of a vector or a block
	op     operator
	seed   uint64
	same   bool // Send and Recv are the same memory, where that is allowed
	placed int  // bit m: member m's buffers lie where all reach them
}

func (c call) String() string {
	return fmt.Sprintf("%s root %d, %d elements, %s, same=%v, placed=%b", kindNames[c.kind], c.root, c.elems, c.op.name, c.same, c.placed)
}

// count returns the bytes of the block from one member for another.
func (c *call) count(from, to int) int {
	switch c.kind {
	case gatherV, allGatherV:
		return (c.elems*(from+1) + from) % (2*c.elems + 1) * c.op.elem
	case scatterV, reduceScatterV:
		return (c.elems*(to+1) + to) % (2*c.elems + 1) * c.op.elem
	case allToAllV:
		return (c.elems*(from+1) + 3*to) % (2*c.elems + 1) * c.op.elem
	}
	return c.elems * c.op.elem
}

// layout returns the counts of the blocks that a member sends or receives, and
// offsets that leave a gap between them.
func (c *call) layout(n int, count func(i int) int) (counts, offsets []int, size int) {
	for i := range n {
		counts, offsets = append(counts, count(i)), append(offsets, size)
		size += count(i)
		if c.gaps() {
			size += c.op.elem
		}
	}
	return counts, offsets, size
}

func (c *call) gaps() bool {
	return c.kind == gatherV || c.kind == scatterV || c.kind == allGatherV || c.kind == allToAllV
}

// isVector reports whether all members contribute a vector, and isV whether
// blocks differ.
func (c *call) isVector() bool {
	return c.kind == allReduce || c.kind == reduce || c.kind == scan || c.kind == exScan
}

func (c *call) isV() bool { return c.gaps() || c.kind == reduceScatterV }

// args makes a member's arguments, buffers filled.
func (c *call) args(r *rig, m int) *Args {
	n := len(r.boards)
	a := &Args{Root: c.root, Elem: c.op.elem, Combine: c.op.combine, ByProgram: c.seed%2 == 0, Single: c.seed%4 == 0}
	sendCounts, sendOffsets, sendAll := c.layout(n, func(to int) int { return c.count(m, to) })
	recvCounts, recvOffsets, recvAll := c.layout(n, func(from int) int { return c.count(from, m) })
	send, recv := 0, 0
	switch c.kind {
	case broadcast:
		recv = c.count(0, 0)
	case gather, gatherV:
		send = c.count(m, c.root)
		if m == c.root {
			recv = recvAll
			a.RecvCounts, a.RecvOffsets = recvCounts, recvOffsets
		}
	case scatter, scatterV:
		recv = c.count(c.root, m)
		if m == c.root {
			send = sendAll
			a.SendCounts, a.SendOffsets = sendCounts, sendOffsets
		}
	case allGather, allGatherV:
		send, recv = c.count(m, m), recvAll
		a.RecvCounts, a.RecvOffsets = recvCounts, recvOffsets
	case reduceScatter, reduceScatterV:
		send, recv = sendAll, c.count(m, m)
		a.RecvCounts, a.RecvOffsets = sendCounts, sendOffsets
	case allToAll, allToAllV:
		send, recv = sendAll, recvAll
		a.SendCounts, a.SendOffsets = sendCounts, sendOffsets
		a.RecvCounts, a.RecvOffsets = recvCounts, recvOffsets
	default:
		send, recv = c.count(0, 0), c.count(0, 0)
	}
	if !c.isV() {
		a.SendCounts, a.SendOffsets, a.RecvCounts, a.RecvOffsets = nil, nil, nil, nil
	}
	c.buffers(r, m, a, send, recv)
	return a
}

// buffers lays Send and Recv.
func (c *call) buffers(r *rig, m int, a *Args, send, recv int) {
	take := func(n, at int) ([]byte, Place) {
		if c.placed>>m&1 == 1 {
			return r.arenas[m][at:][:n:n], Place{Region: arenaRegion, Offset: uint64(at)}
		}
		return make([]byte, n), Place{}
	}
	a.Send, a.SendAt = take(send, 64*(m+1))
	a.Recv, a.RecvAt = take(recv, len(r.arenas[m])/2)
	fill(a.Recv, ^c.seed, m)
	switch {
	case c.same && c.isVector():
		a.Send, a.SendAt = a.Recv, a.RecvAt
	case c.same && (c.kind == allGather || c.kind == allGatherV):
		blocks := a.recvTable(send)
		a.Send, a.SendAt = blocks.block(m), a.RecvAt.shift(blocks.offset(m))
	case c.same && (c.kind == reduceScatter || c.kind == reduceScatterV):
		blocks := table{a.Send, recv, a.RecvCounts, a.RecvOffsets}
		a.Recv, a.RecvAt = blocks.block(m), a.SendAt.shift(blocks.offset(m))
	}
	fill(a.Send, c.seed, m)
	if c.kind == broadcast && m == c.root {
		fill(a.Recv, c.seed, m)
	}
}

// make carries the call out at one member.
func (c *call) make(ctx context.Context, b *Board, seq uint64, a *Args) error {
	return c.makeWith(ctx, b, seq, c.chain(), a)
}

func (c *call) chain() uint64 { return uint64(c.kind)<<32 | uint64(c.elems) }

func (c *call) makeWith(ctx context.Context, b *Board, seq, chain uint64, a *Args) error {
	return methods[c.kind](b, ctx, seq, chain, a)
}

var methods = [kinds]func(b *Board, ctx context.Context, seq, chain uint64, a *Args) error{
	(*Board).AllReduce, (*Board).Reduce, (*Board).Broadcast, (*Board).Gather, (*Board).GatherV, (*Board).Scatter, (*Board).ScatterV,
	(*Board).AllGather, (*Board).AllGather, (*Board).ReduceScatter, (*Board).ReduceScatter, (*Board).AllToAll, (*Board).AllToAllV,
	(*Board).Scan, (*Board).ExScan}

// sent returns a member's Send, or the root's data, when the call begins.
func (c *call) sent(n, m int) []byte {
	size := c.count(m, m)
	switch c.kind {
	case gatherV:
		size = c.count(m, c.root)
	case scatter, scatterV, reduceScatter, reduceScatterV, allToAll, allToAllV:
		_, _, size = c.layout(n, func(to int) int { return c.count(m, to) })
	}
	data := make([]byte, size)
	fill(data, c.seed, m)
	return data
}

// combined returns a(from)∘...∘a(to-1), one after another.
func (c *call) combined(n, from, to int) []byte {
	x := c.sent(n, from)
	for m := from + 1; m < to; m++ {
		c.op.combine(x, x, c.sent(n, m))
	}
	return x
}

// verify compares a member's result with that of a sequential program.
func (c *call) verify(n, m int, a *Args) error {
	want := slices.Clone(a.Recv)
	block := func(from, to int) []byte { // the block of one member for another
		_, offsets, _ := c.layout(n, func(i int) int { return c.count(from, i) })
		return c.sent(n, from)[offsets[to]:][:c.count(from, to)]
	}
	switch c.kind {
	case allReduce:
		want = c.combined(n, 0, n)
	case reduce:
		if m == c.root {
			want = c.combined(n, 0, n)
		}
	case broadcast:
		want = c.sent(n, c.root)
	case gather, gatherV, allGather, allGatherV:
		if m == c.root || c.kind == allGather || c.kind == allGatherV {
			_, offsets, _ := c.layout(n, func(from int) int { return c.count(from, m) })
			for from := range n {
				copy(want[offsets[from]:], c.sent(n, from))
			}
		}
	case scatter, scatterV:
		want = block(c.root, m)
	case reduceScatter, reduceScatterV:
		_, offsets, _ := c.layout(n, func(to int) int { return c.count(m, to) })
		want = c.combined(n, 0, n)[offsets[m]:][:c.count(m, m)]
	case allToAll, allToAllV:
		_, offsets, _ := c.layout(n, func(from int) int { return c.count(from, m) })
		for from := range n {
			copy(want[offsets[from]:], block(from, m))
		}
	case scan:
		want = c.combined(n, 0, m+1)
	case exScan:
		if m > 0 {
			want = c.combined(n, 0, m)
		}
	}
	if !bytes.Equal(want, a.Recv) {
		return fmt.Errorf("%v: member %d of %d has another result", *c, m, n)
	}
	if !c.same && c.kind != broadcast && len(a.Send) > 0 && !bytes.Equal(a.Send, c.sent(n, m)) {
		return fmt.Errorf("%v: member %d of %d: Send was changed", *c, m, n)
	}
	return nil
}
