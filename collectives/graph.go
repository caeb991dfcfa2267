package collectives

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gopgas/gopgas/collectives/internal/board"
	"github.com/gopgas/gopgas/collectives/internal/message"
	"github.com/gopgas/gopgas/runtime"
)

// A Graph says which members of a team exchange blocks. Each member has edges to some
// members and from some, and may have edges to itself.
type Graph struct {
	handle  *runtime.Team
	group   *group
	in, out []int
	slots   []int // edges[i] in brings block slots[i]; nil: block i
	loops   []loop
	edges   *message.Neighbors
	queued  *board.Edges // nil until a call goes along them in mapped memory
	label   string
}

// A loop is an edge from this member to itself: the places of its blocks.
type loop struct{ out, in int }

// NewGraph makes a graph of the edges that each member gives. A member receives from the
// ranks in in, and sends to the ranks in out. Several edges from one member to
// another match in the order of their lists. [runtime.ErrMismatch]: an edge that one
// end does not know. Kind: collective.
func NewGraph(ctx context.Context, t *runtime.Team, in, out []int) (*Graph, error) {
	g, err := newGraph(ctx, t, in, out, nil)
	if err != nil {
		return nil, &OpError{Op: "NewGraph", Team: t.Name(), Rank: t.Rank(), Err: err}
	}
	return g, nil
}

// newGraph exchanges the edges of all members through the launcher, and checks that both ends of each
// edge list it.
func newGraph(ctx context.Context, t *runtime.Team, in, out, slots []int) (*Graph, error) {
	group, err := groupOf(t)
	if err != nil {
		return nil, err
	}
	mine, err := json.Marshal([2][]int{in, out})
	if err != nil {
		return nil, err
	}
	all, err := t.Exchange(ctx, mine)
	if err != nil {
		return nil, err
	}
	if err := matchEdges(all); err != nil {
		return nil, err
	}
	g := &Graph{handle: t, group: group, in: slices.Clone(in), out: slices.Clone(out), slots: slots,
		label: "graph " + strconv.FormatUint(group.graphs.Add(1), 10)}
	g.loops = g.findLoops(t.Rank())
	g.edges, err = message.NewNeighbors(t.Rank(), t.Size(), in, out)
	return g, err
}

// findLoops returns the edges from a member to itself, which match in the order of
// their lists.
func (g *Graph) findLoops(rank int) (loops []loop) {
	at := 0
	for place, m := range g.out {
		if m != rank {
			continue
		}
		at += slices.Index(g.in[at:], rank) + 1 // as often there as here
		loops = append(loops, loop{place, g.slot(at - 1)})
	}
	return loops
}

// slot returns which block edge i in brings.
func (g *Graph) slot(i int) int {
	if g.slots == nil {
		return i
	}
	return g.slots[i]
}

// matchEdges checks that both ends of each edge know it. All members find the same.
func matchEdges(all [][]byte) error {
	type edge struct{ from, to int }
	sent := map[edge]int{}
	n := len(all)
	for rank, b := range all {
		var ends [2][]int
		if err := json.Unmarshal(b, &ends); err != nil {
			return fmt.Errorf("edges of rank %d: %w", rank, err)
		}
		for _, m := range slices.Concat(ends[0], ends[1]) {
			if uint(m) >= uint(n) {
				return fmt.Errorf("edge between ranks %d and %d: %w [0, %d)", rank, m, ErrRange, n)
			}
		}
		for _, from := range ends[0] {
			sent[edge{from, rank}]--
		}
		for _, to := range ends[1] {
			sent[edge{rank, to}]++
		}
	}
	maps.DeleteFunc(sent, func(_ edge, more int) bool { return more == 0 })
	if len(sent) == 0 {
		return nil
	}
	first := slices.MinFunc(slices.Collect(maps.Keys(sent)), func(a, b edge) int { // the same at all members
		return cmp.Or(a.from-b.from, a.to-b.to)
	})
	if more := sent[first]; more < 0 {
		return fmt.Errorf("%w: rank %d lists %d more edges from rank %d than that lists to it; list each at both ends",
			runtime.ErrMismatch, first.to, -more, first.from)
	}
	return fmt.Errorf("%w: rank %d lists %d more edges to rank %d than that lists from it; list each at both ends",
		runtime.ErrMismatch, first.from, sent[first], first.to)
}

// team returns the graph's team, nil for no graph.
func (g *Graph) team() *runtime.Team {
	if g == nil {
		return nil
	}
	return g.handle
}

// In returns the ranks that this member receives from, none for no graph. Kind:
// local.
func (g *Graph) In() []int {
	if g == nil {
		return nil
	}
	in := slices.Clone(g.in)
	for i, m := range g.in {
		in[g.slot(i)] = m
	}
	return in
}

// Out returns the ranks that this member sends to, none for no graph. Kind: local.
func (g *Graph) Out() []int {
	if g == nil {
		return nil
	}
	return slices.Clone(g.out)
}

// layOut returns counts and offsets, in bytes, of the blocks that come along the
// edges: by the call's Blocks, or of one length.
func (g *Graph) layOut(c *Call, counts, offsets []int) ([]int, []int) {
	counts, offsets = counts[:0], offsets[:0]
	for i := range g.in {
		slot := g.slot(i)
		if c.of.is(varied) {
			counts, offsets = append(counts, c.recvBlocks.Counts[slot]*c.size), append(offsets, c.recvBlocks.offset(slot)*c.size)
			continue
		}
		each := len(c.recv) / len(g.in)
		counts, offsets = append(counts, each), append(offsets, slot*each)
	}
	return counts, offsets
}
