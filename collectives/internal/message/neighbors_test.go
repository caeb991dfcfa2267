package message_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// A graph has edges from member to member, several alike and loops too.
type graph struct {
	n       int
	in, out [][]int
}

func drawGraph(t *rapid.T) graph {
	n := rapid.IntRange(1, 8).Draw(t, "members")
	g := graph{n: n, in: make([][]int, n), out: make([][]int, n)}
	member := rapid.IntRange(0, n-1)
	for range rapid.IntRange(0, 24).Draw(t, "edges") {
		from, to := member.Draw(t, "from"), member.Draw(t, "to")
		g.out[from] = append(g.out[from], to)
		at := rapid.IntRange(0, len(g.in[to])).Draw(t, "place")
		g.in[to] = slices.Insert(g.in[to], at, from)
	}
	return g
}

// block returns the block along the nth edge from one member to another.
func block(from, to, nth, length int) []byte {
	return bytes.Repeat([]byte{byte(16*from + to), byte(nth)}, length)
}

// times returns how often list[:i] has list[i].
func times(list []int, i int) (n int) {
	for _, m := range list[:i] {
		if m == list[i] {
			n++
		}
	}
	return n
}

// buffer puts the blocks of a member's edges one after another.
func (g graph) buffer(list []int, of func(other, nth int) []byte) (all []byte, counts, offsets []int) {
	counts, offsets = []int{}, []int{}
	for i, other := range list {
		b := of(other, times(list, i))
		counts, offsets = append(counts, len(b)), append(offsets, len(all))
		all = append(all, b...)
	}
	return all, counts, offsets
}

// check runs a neighborhood collective in which each edge carries blockOf's
// block, and compares the members' output with these.
func (g graph) check(t *rapid.T, c message.Collective, blockOf func(from, to, nth int) []byte, counted bool) {
	args, want := make([]*message.Args, g.n), make([][]byte, g.n)
	for i := range g.n {
		edges, err := message.NewNeighbors(i, g.n, g.in[i], g.out[i])
		require.NoError(t, err)
		a := &message.Args{Elem: 1, Neighbors: edges}
		args[i] = a
		a.Send, a.SendCounts, a.SendOffsets = g.buffer(g.out[i], func(to, nth int) []byte { return blockOf(i, to, nth) })
		want[i], a.RecvCounts, a.RecvOffsets = g.buffer(g.in[i], func(from, nth int) []byte { return blockOf(from, i, nth) })
		if c == message.NeighborAllGather {
			a.Send = blockOf(i, 0, 0)
		}
		if !counted {
			a.SendCounts, a.SendOffsets, a.RecvCounts, a.RecvOffsets = nil, nil, nil, nil
		}
		a.Recv = make([]byte, len(want[i]))
	}
	al, ok := message.Find(c, "hops")
	require.True(t, ok)
	p := &problem{al: &al, n: g.n, args: args, arenas: make([]message.Arena, g.n)}
	w := newNet(g.n, rapid.IntRange(0, 2).Draw(t, "room"))
	w.finish(t, p.run)
	for i, a := range args {
		require.True(t, bytes.Equal(want[i], a.Recv), "member %d received %x, want %x", i, a.Recv, want[i])
	}
}

func TestNeighborAlgorithmsSendBlocksAlongTheEdges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		length := rapid.IntRange(0, 40).Draw(t, "length")
		g.check(t, message.NeighborAllToAll, func(from, to, nth int) []byte { return block(from, to, nth, length) }, false)
		g.check(t, message.NeighborAllGather, func(from, _, _ int) []byte { return block(from, 0, 0, length) }, false)
		vary := func(from, to, nth int) []byte { return block(from, to, nth, (3*from+to+nth)%9) }
		g.check(t, message.NeighborAllToAll, vary, true)
		g.check(t, message.NeighborAllGather, func(from, _, _ int) []byte { return vary(from, 0, 0) }, true)
	})
}

func TestNewNeighborsRefusesImpossibleEdges(t *testing.T) {
	t.Parallel()
	_, err := message.NewNeighbors(0, 2, []int{2}, nil)
	require.ErrorIs(t, err, message.ErrNeighbor)
	require.ErrorContains(t, err, "member 2: members are 0 to 1")
	_, err = message.NewNeighbors(0, 2, nil, []int{-1})
	require.ErrorIs(t, err, message.ErrNeighbor)
	_, err = message.NewNeighbors(0, 2, []int{0, 1}, []int{1})
	require.ErrorIs(t, err, message.ErrNeighbor)
	require.ErrorContains(t, err, "sends to itself 0 times and receives from itself 1 times")
}
