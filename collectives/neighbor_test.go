package collectives_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// An edge leads from a rank to a rank.
type edge struct{ from, to int }

// drawEdges returns the edges of a random graph and a rank's ends of them.
func drawEdges(rnd *rand.Rand, n, rank int) (edges []edge, in, out []int) {
	for range rnd.IntN(3*n + 1) {
		e := edge{rnd.IntN(n), rnd.IntN(n)}
		edges = append(edges, e)
		if e.to == rank {
			in = append(in, e.from)
		}
		if e.from == rank {
			out = append(out, e.to)
		}
	}
	return edges, in, out
}

// value returns the i-th element of an edge.
func value(e edge, nth, i int) int32 { return int32(e.from<<24 | e.to<<16 | nth<<8 | i) }

// nth returns the number of a list's i-th edge among the edges between the same ranks.
func nth(ranks []int, i int) int {
	count := 0
	for _, r := range ranks[:i] {
		if r == ranks[i] {
			count++
		}
	}
	return count
}

func TestNeighborCallsSendBlocksAlongTheEdges(t *testing.T) {
	testjob.Each(t, 1, func(t *testing.T, c testjob.Config) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			for range 5 {
				_, in, out := drawEdges(rnd, r.N, r.Me)
				g, err := collectives.NewGraph(ctx, r.World, in, out)
				r.NoError(err)
				r.Len(g.In(), len(in))
				r.True(slices.Equal(out, g.Out()))
				alongEdges(ctx, r, g, in, out)
			}
		})
	})
}

// alongEdges makes all four calls along a graph. An edge carries 2 elements, or, in the
// forms with a V, one more than the rank of its sender.
func alongEdges(ctx context.Context, r *testjob.Rank, g *collectives.Graph, in, out []int) {
	var send, sendV, want, wantV, gathered, gatheredV []int32
	var to, from collectives.Blocks
	for i, rank := range out {
		send = append(send, value(edge{r.Me, rank}, nth(out, i), 0), value(edge{r.Me, rank}, nth(out, i), 1))
		to.Counts = append(to.Counts, r.Me+1)
		for k := range r.Me + 1 {
			sendV = append(sendV, value(edge{r.Me, rank}, nth(out, i), k))
		}
	}
	for i, rank := range in {
		want = append(want, value(edge{rank, r.Me}, nth(in, i), 0), value(edge{rank, r.Me}, nth(in, i), 1))
		gathered = append(gathered, int32(rank), int32(-rank))
		from.Counts = append(from.Counts, rank+1)
		for k := range rank + 1 {
			wantV = append(wantV, value(edge{rank, r.Me}, nth(in, i), k))
			gatheredV = append(gatheredV, int32(rank*k))
		}
	}
	own := make([]int32, r.Me+1)
	for k := range own {
		own[k] = int32(r.Me * k)
	}
	got, gotV := make([]int32, len(want)), make([]int32, len(wantV))
	r.NoError(collectives.NeighborAllToAll(ctx, g, send, got))
	r.True(slices.Equal(want, got), "%v %v", want, got)
	r.NoError(collectives.NeighborAllToAllV(ctx, g, sendV, to, gotV, from))
	r.True(slices.Equal(wantV, gotV), "%v %v", wantV, gotV)
	r.NoError(collectives.NeighborAllGather(ctx, g, []int32{int32(r.Me), int32(-r.Me)}, got))
	r.True(slices.Equal(gathered, got), "%v %v", gathered, got)
	r.NoError(collectives.NeighborAllGatherV(ctx, g, own, gotV, from))
	r.True(slices.Equal(gatheredV, gotV), "%v %v", gatheredV, gotV)
}

// TestNeighborsOfAGridExchangeTheirEdges sends to each neighbor where the sender is
// and in which direction it sends.
func TestNeighborsOfAGridExchangeTheirEdges(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		for _, periodic := range []bool{false, true} {
			for _, dims := range [][]int{{r.N}, {1, r.N}, {r.N, 1, 1}, {2, r.N / 2}} {
				if dims[len(dims)-1] == 0 || dims[0] == 2 && r.N%2 != 0 {
					continue
				}
				wraps := make([]bool, len(dims))
				wraps[len(dims)-1] = periodic
				cart, err := collectives.NewCart(ctx, r.World, dims, wraps)
				r.NoError(err)
				rank, ok := cart.RankAt(cart.Coords(r.Me)...)
				r.True(ok)
				r.Equal(r.Me, rank)
				var send, want [][3]int
				for dim := range dims {
					for _, by := range []int{-1, 1} {
						if n, ok := cart.Neighbor(r.Me, dim, by); ok {
							send = append(send, [3]int{r.Me, dim, by})
							want = append(want, [3]int{n, dim, -by}) // its sender sends it in the opposite direction
						}
					}
				}
				got := make([][3]int, len(want))
				r.NoError(collectives.NeighborAllToAll(ctx, cart.Graph, send, got))
				r.True(slices.Equal(want, got), "%v periodic %v: %v, not %v", dims, periodic, got, want)
				r.Equal(cart.In(), cart.Out())
			}
		}
	})
}

func TestEdgeThatOneEndDoesNotNameReturnsErrMismatch(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		var out []int
		if r.Me == 0 {
			out = []int{1}
		}
		_, err := collectives.NewGraph(ctx, r.World, nil, out)
		r.ErrorIs(err, runtime.ErrMismatch)
		_, err = collectives.NewGraph(ctx, r.World, nil, []int{r.N})
		r.ErrorIs(err, collectives.ErrRange)
		_, err = collectives.NewCart(ctx, r.World, []int{r.N, 2}, []bool{true, true})
		r.ErrorIs(err, collectives.ErrLength)
		_, err = collectives.NewCart(ctx, r.World, []int{0}, []bool{true})
		r.ErrorIs(err, collectives.ErrRange)
		g, err := collectives.NewGraph(ctx, r.World, []int{r.Left()}, []int{r.Right()})
		r.NoError(err)
		x := make([]int, 4)
		r.ErrorIs(collectives.NeighborAllGather(ctx, g, x[:2], x[2:3]), collectives.ErrLength)
		r.ErrorIs(collectives.NeighborAllToAll(ctx, g, x, x), collectives.ErrOverlap)
		other, err := r.World.Split(ctx, 0, 0)
		r.NoError(err)
		_, err = collectives.Start(ctx, other, collectives.NeighborAllGatherCall(g, x[:1], x[1:2]))
		r.ErrorIs(err, runtime.ErrTeam)
	})
}
