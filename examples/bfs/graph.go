package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/runtime"
)

// An edge leads from From to To. A rank that receives one owns From.
type edge struct{ From, To int64 }

// A graph is this rank's part of an undirected graph: the vertices [first, first+n) with
// their neighbors, sorted and each once. A vertex has no edge to itself.
type graph struct {
	world    *runtime.Team
	vertices int64 // of all ranks
	block    int64 // vertices of a rank
	first    int64
	offsets  []int   // of each vertex's neighbors, and of the end
	to       []int64 // neighbors of all vertices
}

// newGraph returns a graph without edges.
func newGraph(world *runtime.Team, vertices int64) *graph {
	size := int64(world.Size())
	g := &graph{world: world, vertices: vertices, block: (vertices + size - 1) / size}
	g.first = min(int64(world.Rank())*g.block, vertices)
	return g
}

// n returns the number of this rank's vertices.
func (g *graph) n() int64 { return min(g.block, g.vertices-g.first) }

// owner returns the rank of a vertex.
func (g *graph) owner(v int64) int { return int(v / g.block) }

// neighbors returns the neighbors of a vertex of this rank.
func (g *graph) neighbors(v int64) []int64 {
	i := v - g.first
	return g.to[g.offsets[i]:g.offsets[i+1]]
}

// build generates the graph. Each rank draws its share of the edges, and sends each edge to
// the ranks of both ends.
func build(ctx context.Context, world *runtime.Team, c *conveyor.Conveyor[edge], o *options) (*graph, error) {
	g := newGraph(world, 1<<o.scale)
	pushed := make(chan error, 1)
	go func() {
		err := g.draw(o, world.Rank(), world.Size(), func(e edge) error {
			return errors.Join(c.Push(ctx, g.owner(e.From), e), c.Push(ctx, g.owner(e.To), edge{e.To, e.From}))
		})
		pushed <- errors.Join(err, c.Finish(ctx))
	}()
	var mine []edge
	for e, err := range c.All(ctx) {
		if err != nil {
			return nil, err
		}
		if g.owner(e.Value.From) != world.Rank() {
			return nil, fmt.Errorf("rank %d sent vertex %d to rank %d", e.From, e.Value.From, world.Rank())
		}
		mine = append(mine, e.Value)
	}
	g.fill(mine)
	return g, <-pushed
}

// draw calls add with each edge of one of so many shares. The edges do not depend on the
// number of shares: each has a generator of its own.
func (g *graph) draw(o *options, share, shares int, add func(edge) error) error {
	edges := int64(o.edges) << o.scale
	for i := int64(share); i < edges; i += int64(shares) {
		e := kronecker(rand.NewPCG(o.seed, uint64(i)), o.scale)
		if e.From == e.To {
			continue
		}
		if err := add(e); err != nil {
			return err
		}
	}
	return nil
}

// kronecker draws an edge of a Kronecker graph with Graph500's probabilities: a quadrant of
// the matrix of all edges, then a quadrant of that quadrant, and so on.
func kronecker(from *rand.PCG, scale int) (e edge) {
	const a, b, c = 0.57, 0.19, 0.19
	rnd := rand.New(from)
	for range scale {
		e.From, e.To = 2*e.From, 2*e.To
		switch p := rnd.Float64(); {
		case p < a:
		case p < a+b:
			e.To++
		case p < a+b+c:
			e.From++
		default:
			e.From, e.To = e.From+1, e.To+1
		}
	}
	return edge{scramble(e.From, scale), scramble(e.To, scale)}
}

// scramble gives vertices other numbers, one to one, so that the vertices with many edges
// are spread over the ranks.
func scramble(v int64, scale int) int64 {
	const odd = 0x9e3779b97f4a7c15
	mask := uint64(1)<<scale - 1
	x := uint64(v)
	for range 2 {
		x = x * odd & mask
		x ^= x >> (scale/2 + 1)
	}
	return int64(x)
}

// fill stores the edges of this rank's vertices.
func (g *graph) fill(edges []edge) {
	slices.SortFunc(edges, func(x, y edge) int {
		if x.From != y.From {
			return int(x.From - y.From)
		}
		return int(x.To - y.To)
	})
	edges = slices.Compact(edges)
	g.offsets, g.to = make([]int, 1, g.n()+1), make([]int64, 0, len(edges))
	for v := range g.n() {
		for len(edges) > 0 && edges[0].From == g.first+v {
			g.to = append(g.to, edges[0].To)
			edges = edges[1:]
		}
		g.offsets = append(g.offsets, len(g.to))
	}
}

// root returns a vertex with a neighbor. All ranks draw candidates alike, and the owner
// of each says whether it has one. Kind: collective.
func (g *graph) root(ctx context.Context, seed uint64, number int) (int64, error) {
	const candidates = 64
	rnd := rand.New(rand.NewPCG(seed, ^uint64(number)))
	for range 1 << 10 {
		drawn, good := [candidates]int64{}, make([]uint8, candidates)
		for i := range drawn {
			drawn[i] = rnd.Int64N(g.vertices)
			if v := drawn[i]; g.owner(v) == g.world.Rank() && len(g.neighbors(v)) > 0 {
				good[i] = 1
			}
		}
		if err := collectives.AllReduce(ctx, g.world, collectives.Max[uint8](), good, good); err != nil {
			return 0, err
		}
		if i := slices.Index(good, 1); i >= 0 {
			return drawn[i], nil
		}
	}
	return 0, errors.New("found no vertex with a neighbor")
}
