package board

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/internal/wait"
)

// A digraph has edges in and out by member, those between the same two in one order
// at both ends. Edge i in of member m fills block slots[m][i].
type digraph struct{ in, out, slots [][]int }

func newDigraph(n int) *digraph {
	return &digraph{make([][]int, n), make([][]int, n), make([][]int, n)}
}

// join adds an edge. In the list of where it leads, it gets a place among those from
// other members.
func (g *digraph) join(from, to, place int) {
	g.out[from] = append(g.out[from], to)
	last := len(g.in[to])
	for i, m := range g.in[to] {
		if m == from {
			place = max(place, i+1)
		}
	}
	g.in[to] = slices.Insert(g.in[to], min(place, last), from)
}

func randomDigraph(random *rand.Rand, n, edges int) *digraph {
	g := newDigraph(n)
	for range edges {
		g.join(random.IntN(n), random.IntN(n), random.IntN(4))
	}
	for m := range g.slots {
		if random.IntN(2) == 0 {
			g.slots[m] = random.Perm(len(g.in[m]))
		}
	}
	return g
}

// circle has every member send to the next one and the one before.
func circle(n int) *digraph {
	g := newDigraph(n)
	for m := range n {
		g.join(m, (m+1)%n, n)
		g.join(m, (m+n-1)%n, n)
	}
	return g
}

// An edgeRig is a team in one process that exchanges blocks along graphs.
type edgeRig struct {
	*rig
	with   tuning
	queues []*Queues
	mem    map[[2]int][]byte // of the queue from one member to another
}

func newEdgeRig(t testing.TB, n int, with tuning) *edgeRig {
	t.Helper()
	r := &edgeRig{rig: &rig{}, with: with, mem: map[[2]int][]byte{}}
	for rank := range n {
		bell := wait.NewLocal()
		q, err := newQueuesWith(Config{Rank: rank, Size: n, Await: waitOn(bell), View: r.view}, with)
		require.NoError(t, err)
		r.bells, r.arenas = append(r.bells, bell), append(r.arenas, make([]byte, max(1<<17, 19*with.large)))
		r.queues = append(r.queues, q)
	}
	return r
}

// edges returns every member's edges of a graph, and makes the queues for them.
func (r *edgeRig) edges(t require.TestingT, g *digraph) (all []*Edges) {
	for m, q := range r.queues {
		_, to := q.Missing(g.in[m], g.out[m])
		for _, other := range to {
			mem := lineAligned(queueSizeWith(r.with.large))
			r.mem[[2]int{m, other}] = mem
			require.NoError(t, q.LeadTo(other, mem, r.bells[other]))
		}
	}
	for m, q := range r.queues {
		from, _ := q.Missing(g.in[m], g.out[m])
		for _, other := range from {
			require.NoError(t, q.LeadFrom(other, r.mem[[2]int{other, m}], r.bells[other]))
		}
		e, err := q.Edges(g.in[m], g.out[m], g.slots[m])
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

// An exchange is one call of all members along a graph.
type exchange struct {
	graph  *digraph
	gather bool // all edges out of a member carry the same
	vary   bool // lengths differ
	size   int  // bytes of a block, about
	seed   uint64
	placed int // bit m: member m's input lies where all reach it
}

func (x *exchange) String() string {
	return fmt.Sprintf("gather=%v vary=%v %d bytes placed=%b", x.gather, x.vary, x.size, x.placed)
}

// block returns the block along the nth edge from one member to another.
func (x *exchange) block(from, to, nth int) []byte {
	if x.gather {
		to, nth = 0, 0
	}
	size := x.size
	if x.vary {
		size = (x.size*(from+1) + 3*to + 5*nth) % (2*x.size + 1)
	}
	b := make([]byte, size)
	fill(b, x.seed, from<<16|to<<8|nth)
	return b
}

// nth returns the number of edges to the same member before the i-th of a list.
func nth(list []int, i int) (n int) {
	for _, m := range list[:i] {
		if m == list[i] {
			n++
		}
	}
	return n
}

// lay puts blocks one after another, with a gap behind each.
func lay(blocks [][]byte, gap int) (all []byte, counts, offsets []int) {
	for _, b := range blocks {
		counts, offsets = append(counts, len(b)), append(offsets, len(all))
		all = append(append(all, b...), make([]byte, gap)...)
	}
	return all, counts, offsets
}

// args returns a member's arguments, and its expected output.
func (x *exchange) args(r *rig, m int) (a *Args, want []byte) {
	a = &Args{Elem: 1}
	gap := 0
	if x.vary {
		gap = 3
	}
	sent, got := [][]byte(nil), make([][]byte, len(x.graph.in[m]))
	for i, to := range x.graph.out[m] {
		sent = append(sent, x.block(m, to, nth(x.graph.out[m], i)))
	}
	for i, from := range x.graph.in[m] {
		place := i
		if slots := x.graph.slots[m]; slots != nil {
			place = slots[i]
		}
		got[place] = x.block(from, m, nth(x.graph.in[m], i))
	}
	var data []byte
	data, a.SendCounts, a.SendOffsets = lay(sent, gap)
	want, a.RecvCounts, a.RecvOffsets = lay(got, gap)
	if x.gather {
		data = x.block(m, 0, 0)
	}
	if !x.vary {
		a.SendCounts, a.SendOffsets, a.RecvCounts, a.RecvOffsets = nil, nil, nil, nil
	}
	a.Send, a.Recv = data, make([]byte, len(want))
	if x.placed>>m&1 == 1 {
		a.Send, a.SendAt = r.arenas[m][64:][:len(data):len(data)], Place{Region: arenaRegion, Offset: 64}
		copy(a.Send, data)
	}
	return a, want
}

// make carries the call out at one member. It overwrites the member's input as soon
// as the call returns.
func (x *exchange) make(ctx context.Context, r *rig, e *Edges, seq uint64) error {
	a, want := x.args(r, e.rank)
	sent := slices.Clone(a.Send)
	if err := x.do(ctx, e, seq, a); err != nil {
		return err
	}
	if !bytes.Equal(want, a.Recv) {
		return fmt.Errorf("call %d, %v: member %d of %d has another result", seq, x, e.rank, e.n)
	}
	if !bytes.Equal(sent, a.Send) {
		return fmt.Errorf("call %d, %v: member %d of %d: Send was changed", seq, x, e.rank, e.n)
	}
	fill(a.Send, 0, e.rank)
	r.made.Add(1)
	return nil
}

func (x *exchange) do(ctx context.Context, e *Edges, seq uint64, a *Args) error {
	if x.gather {
		return e.AllGather(ctx, seq, x.chain(), a)
	}
	return e.AllToAll(ctx, seq, x.chain(), a)
}

func (x *exchange) chain() uint64 { return uint64(x.size)<<1 | 1 }

// along makes calls one after another, at all members at the same time.
func (r *edgeRig) along(t require.TestingT, calls []exchange) {
	edges := map[*digraph][]*Edges{}
	for _, x := range calls {
		if edges[x.graph] == nil {
			edges[x.graph] = r.edges(t, x.graph)
		}
	}
	watched, stop := testwatch.With(context.Background(), r.made.Load)
	defer stop()
	ctx, cancel := context.WithCancelCause(watched)
	defer cancel(nil)
	var all errgroup.Group
	for m := range r.queues {
		all.Go(func() error {
			for i := range calls {
				if err := calls[i].make(ctx, r.rig, edges[calls[i].graph][m], uint64(i)); err != nil {
					cancel(err)
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
}
