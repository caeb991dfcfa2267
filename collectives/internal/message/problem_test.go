package message_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// A problem is a collective call at all members, with its expected results.
type problem struct {
	al      *message.Algorithm
	n, root int
	elem    int
	op      operator
	inPlace bool
	r       *rand.Rand
	args    []*message.Args
	want    [][]byte // each member's Recv afterward
	sent    [][]byte // each member's Send afterward, unless it is (part of) Recv
	arenas  []message.Arena
}

// random returns n bytes with no spare capacity for an algorithm to reach.
func (p *problem) random(n int) []byte {
	b := slices.Clip(make([]byte, n))
	p.op.fill(p.r, b)
	return b
}

// drawProblem draws a call that the algorithm can do.
func drawProblem(t *rapid.T, al *message.Algorithm) *problem {
	ops := operators()
	p := &problem{
		al:      al,
		n:       rapid.IntRange(1, 9).Draw(t, "members"),
		inPlace: rapid.Bool().Draw(t, "in place"),
		r:       rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
		op:      operator{elem: rapid.SampledFrom([]int{1, 3, 8}).Draw(t, "element"), fill: anything},
	}
	if al.Needs&message.EvenSize != 0 {
		p.n = rapid.SampledFrom([]int{1, 2, 4, 6, 8, 10}).Draw(t, "even members")
	}
	if reduces(al.Collective) {
		ops = slices.DeleteFunc(ops, func(o operator) bool {
			return o.ordered && !al.Exact || !o.commutes && al.Needs&message.Commuting != 0
		})
		p.op = ops[rapid.IntRange(0, len(ops)-1).Draw(t, "operator")]
	}
	p.elem = p.op.elem
	p.root = rapid.IntRange(0, p.n-1).Draw(t, "root")
	p.arenas = make([]message.Arena, p.n)
	p.want, p.sent = make([][]byte, p.n), make([][]byte, p.n)
	segment := rapid.SampledFrom([]int{0, 1, 24, 100}).Draw(t, "segment")
	for i := range p.n {
		p.args = append(p.args, &message.Args{
			Root: p.root, Elem: p.elem, Segment: segment, Scratch: p.arenas[i].Take,
			Combine: p.op.combine, Commutative: p.op.commutes, Ordered: p.op.ordered,
		})
	}
	p.drawHosts(t)
	p.draw(t)
	for i, a := range p.args {
		require.Zero(t, unmet(al, p.n, a), "the problem does not fit")
		if p.sent[i] == nil {
			p.sent[i] = slices.Clone(a.Send)
		}
	}
	return p
}

// drawHosts puts the members on up to three hosts.
func (p *problem) drawHosts(t *rapid.T) {
	if p.al.Needs&message.HostMap == 0 {
		return
	}
	host := rapid.SliceOfN(rapid.IntRange(5, 7), p.n, p.n).Draw(t, "hosts")
	if p.al.Needs&message.HostRuns != 0 || p.al.Needs&message.OrderedHosts != 0 && !p.op.commutes {
		slices.Sort(host)
	}
	even := message.NewHosts(host).Even()
	within, among := p.drawParts(t, "within", true), p.drawParts(t, "among", even)
	defaults := rapid.Bool().Draw(t, "default parts")
	for _, a := range p.args {
		a.Hosts = message.NewHosts(host)
		if !defaults {
			a.Hosts.Within, a.Hosts.Among = within, among
		}
	}
}

// drawParts draws algorithms that can be parts of this one. Blocks are alike in a
// part if they are in the call, and hosts are even.
func (p *problem) drawParts(t *rapid.T, level string, even bool) func(message.Collective) message.Func {
	met := message.PackedBlocks | message.EveryCount
	if p.op.commutes {
		met |= message.Commuting
	}
	if even && p.al.Needs&message.EqualBlocks != 0 {
		met |= message.EqualBlocks
	}
	var parts []message.Func
	for c := message.Broadcast; c <= message.ExScan; c++ {
		all := slices.DeleteFunc(message.Algorithms(c), func(al message.Algorithm) bool { return al.Needs&^met != 0 })
		parts = append(parts, all[rapid.IntRange(0, len(all)-1).Draw(t, fmt.Sprintf("%s %s", level, c))].Run)
	}
	return func(c message.Collective) message.Func { return parts[c] }
}

// draw fills in the buffers and the expected results.
func (p *problem) draw(t *rapid.T) {
	switch p.al.Collective {
	case message.Broadcast, message.Reduce, message.AllReduce, message.Scan, message.ExScan:
		p.drawVectors(rapid.IntRange(0, 300).Draw(t, "elements") * p.elem)
	case message.AllToAll:
		p.drawAllToAll(t)
	default:
		p.drawBlocks(t)
	}
}

// drawVectors draws the collectives of one vector at each member.
func (p *problem) drawVectors(length int) {
	vectors := make([][]byte, p.n)
	for i, a := range p.args {
		vectors[i] = p.random(length)
		a.Recv = p.random(length)
		a.Send = a.Recv
		if !p.inPlace {
			a.Send = p.random(length)
		}
		copy(a.Send, vectors[i])
		p.want[i] = slices.Clone(a.Recv)
	}
	for i, a := range p.args {
		switch p.al.Collective {
		case message.Broadcast:
			copy(a.Recv, vectors[i])
			a.Send, p.want[i] = nil, vectors[p.root]
		case message.Reduce:
			if i == p.root {
				p.want[i] = p.op.fold(vectors)
			} else {
				a.Recv = nil
				p.want[i] = nil
			}
		case message.AllReduce:
			p.want[i] = p.op.fold(vectors)
		case message.Scan:
			p.want[i] = p.op.fold(vectors[:i+1])
		case message.ExScan:
			if i > 0 {
				p.want[i] = p.op.fold(vectors[:i])
			}
		}
	}
	for i, a := range p.args {
		p.sent[i] = vectors[i]
		if p.inPlace && len(a.Recv) > 0 {
			p.sent[i] = p.want[i]
		}
		if p.al.Collective == message.Broadcast {
			p.sent[i] = []byte{}
		}
	}
}

// A layout is the places of n blocks in a buffer.
type layout struct {
	counts, offsets []int
	each, total     int
}

// drawLayout draws blocks of one length or of many, with gaps and in any order
// unless the algorithm needs them packed.
func (p *problem) drawLayout(t *rapid.T, name string) layout {
	l := layout{each: rapid.IntRange(0, 20).Draw(t, name+" block") * p.elem}
	l.total = l.each * p.n
	if p.al.Needs&message.EqualBlocks != 0 || rapid.Bool().Draw(t, name+" alike") {
		return l
	}
	l.counts = rapid.SliceOfN(rapid.IntRange(0, 20), p.n, p.n).Draw(t, name+" counts")
	for i := range l.counts {
		l.counts[i] *= p.elem
	}
	return p.place(t, name, l)
}

// place gives the blocks of a layout their offsets.
func (p *problem) place(t *rapid.T, name string, l layout) layout {
	l.offsets, l.total = make([]int, len(l.counts)), 0
	order, gaps := make([]int, len(l.counts)), false
	for i := range order {
		order[i] = i
	}
	if p.al.Needs&message.PackedBlocks == 0 {
		gaps = rapid.Bool().Draw(t, name+" gaps")
		p.r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
	for _, i := range order {
		if gaps {
			l.total += p.r.IntN(3) * p.elem
		}
		l.offsets[i] = l.total
		l.total += l.counts[i]
	}
	return l
}

// of returns block i of buf.
func (l layout) of(buf []byte, i int) []byte {
	if l.counts == nil {
		return buf[i*l.each:][:l.each:l.each]
	}
	return buf[l.offsets[i]:][:l.counts[i]:l.counts[i]]
}

// drawBlocks draws the collectives of one block at a member and all blocks at
// another.
func (p *problem) drawBlocks(t *rapid.T) {
	l := p.drawLayout(t, "all")
	all := p.random(l.total) // all blocks of Scatter, Gather and AllGather
	contributions := make([][]byte, p.n)
	for i := range contributions {
		contributions[i] = p.random(l.total)
	}
	for i, a := range p.args {
		own := l.of(all, i)
		switch p.al.Collective {
		case message.Scatter:
			p.scatter(a, l, i, all, own)
		case message.ReduceScatter:
			p.reduceScatter(a, l, i, contributions)
		default:
			p.gather(a, l, i, all, own)
		}
	}
}

func (p *problem) gather(a *message.Args, l layout, i int, all, own []byte) {
	if p.al.Collective == message.AllGather || i == p.root || p.al.Needs&message.EveryCount != 0 {
		a.RecvCounts, a.RecvOffsets = l.counts, l.offsets
	}
	a.Send = make([]byte, len(own))
	if p.al.Collective == message.AllGather || i == p.root {
		a.Recv = p.random(l.total)
		p.want[i] = slices.Clone(a.Recv)
		for j := range p.n {
			copy(l.of(p.want[i], j), l.of(all, j))
		}
		if p.inPlace {
			a.Send = l.of(a.Recv, i)
		}
	}
	copy(a.Send, own)
}

func (p *problem) scatter(a *message.Args, l layout, i int, all, own []byte) {
	if i == p.root || p.al.Needs&message.EveryCount != 0 {
		a.SendCounts, a.SendOffsets = l.counts, l.offsets
	}
	a.Recv = p.random(len(own))
	p.want[i] = own
	if i == p.root {
		a.Send = p.random(l.total)
		copy(a.Send, all)
		if p.inPlace {
			a.Recv = l.of(a.Send, i)
		}
	}
}

func (p *problem) reduceScatter(a *message.Args, l layout, i int, contributions [][]byte) {
	a.RecvCounts, a.RecvOffsets = l.counts, l.offsets
	a.Send = make([]byte, l.total)
	copy(a.Send, contributions[i])
	parts := make([][]byte, p.n)
	for j := range parts {
		parts[j] = l.of(contributions[j], i)
	}
	p.want[i] = p.op.fold(parts)
	a.Recv = p.random(len(parts[0]))
	if p.inPlace {
		a.Recv = l.of(a.Send, i)
		p.sent[i] = slices.Clone(contributions[i])
		copy(l.of(p.sent[i], i), p.want[i])
	}
}

// drawAllToAll draws the length of each member's block for each member.
func (p *problem) drawAllToAll(t *rapid.T) {
	outs, ins := make([]layout, p.n), make([]layout, p.n)
	each := layout{each: rapid.IntRange(0, 20).Draw(t, "block") * p.elem}
	alike := p.al.Needs&message.EqualBlocks != 0 || rapid.Bool().Draw(t, "alike")
	for i := range p.n {
		each.total = each.each * p.n
		outs[i], ins[i] = each, each
		if !alike {
			outs[i].counts, ins[i].counts = make([]int, p.n), make([]int, p.n)
		}
	}
	for i := range p.n {
		for j := range p.n {
			if !alike {
				count := p.r.IntN(20) * p.r.IntN(2) * p.elem
				outs[i].counts[j], ins[j].counts[i] = count, count
			}
		}
	}
	for i, a := range p.args {
		if !alike {
			outs[i], ins[i] = p.place(t, "out", outs[i]), p.place(t, "in", ins[i])
			a.SendCounts, a.SendOffsets = outs[i].counts, outs[i].offsets
			a.RecvCounts, a.RecvOffsets = ins[i].counts, ins[i].offsets
		}
		a.Send, a.Recv = p.random(outs[i].total), p.random(ins[i].total)
		p.want[i] = slices.Clone(a.Recv)
	}
	for i := range p.n {
		for j := range p.n {
			copy(ins[j].of(p.want[j], i), outs[i].of(p.args[i].Send, j))
		}
	}
}

// run runs the call over w.
func (p *problem) run(ctx context.Context, m *member) error {
	p.arenas[m.rank].Reset()
	return p.al.Run(ctx, m, p.args[m.rank])
}

// check compares the results with the expected ones.
func (p *problem) check(t require.TestingT) {
	for i, a := range p.args {
		require.True(t, bytes.Equal(p.want[i], a.Recv), "%s %s: member %d received\n%x, want\n%x", p.al.Collective, p.al.Name, i, a.Recv, p.want[i])
		shared := p.inPlace && p.al.Collective != message.ReduceScatter
		require.True(t, shared || bytes.Equal(p.sent[i], a.Send), "%s %s: member %d's Send changed to\n%x, was\n%x",
			p.al.Collective, p.al.Name, i, a.Send, p.sent[i])
	}
}
