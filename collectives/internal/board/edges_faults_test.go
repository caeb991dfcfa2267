package board

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// broken calls f at each member and returns the error of each. The first error ends
// the waits of all other members.
func (r *edgeRig) broken(t testing.TB, g *digraph, f func(ctx context.Context, e *Edges) error) []error {
	edges := r.edges(t, g)
	ctx, breakTeam := context.WithCancelCause(testwatch.Context(t))
	defer breakTeam(nil)
	errs := make([]error, len(edges))
	var all errgroup.Group
	for m, e := range edges {
		all.Go(func() error {
			if errs[m] = f(ctx, e); errs[m] != nil {
				breakTeam(errBroken)
			}
			return nil
		})
	}
	_ = all.Wait()
	return errs
}

func TestDiffersNamesAMemberThatExchangesInAnotherCall(t *testing.T) {
	const odd = 1
	for _, n := range []int{2, 3, 5} {
		for _, size := range []int{0, 8, 100, tiny.large} {
			x := exchange{graph: circle(n), size: size, placed: size}
			errs := newEdgeRig(t, n, tiny).broken(t, x.graph, func(ctx context.Context, e *Edges) error {
				a, _ := x.args(&rig{arenas: apart(n)}, e.rank)
				if e.rank == odd {
					return e.AllToAll(ctx, 3, 12, a)
				}
				return e.AllToAll(ctx, 3, 11, a)
			})
			named(t, errs, odd, 11, 12, fmt.Sprintf("%d members, %d bytes", n, size))
		}
	}
}

// apart returns n arenas that other members do not reach.
func apart(n int) [][]byte {
	arenas := make([][]byte, n)
	for i := range arenas {
		arenas[i] = make([]byte, 1<<16)
	}
	return arenas
}

func TestDiffersNamesAMemberThatExchangedOnceLess(t *testing.T) {
	x := exchange{graph: circle(3), size: 8}
	r := newEdgeRig(t, 3, tiny)
	errs := r.broken(t, x.graph, func(ctx context.Context, e *Edges) error {
		seq := uint64(1)
		if e.rank == 2 {
			seq++
		}
		return x.make(ctx, r.rig, e, seq)
	})
	var differs *Differs
	require.ErrorAs(t, errors.Join(errs...), &differs)
	require.Contains(t, []uint64{1, 2}, differs.Seq)
}

// TestEndsOfAnEdgeThatDisagreeAreNamed: about a block of a line, of chunks, that is
// empty at one end, and of a loop.
func TestEndsOfAnEdgeThatDisagreeAreNamed(t *testing.T) {
	for _, lengths := range [][2]int{{8, 9}, {0, 8}, {8, 0}, {100, 8}, {8, 100}, {100, 101}, {tiny.large, 2 * tiny.large}, {tiny.large, 0}} {
		for _, placed := range []int{0, 1} {
			r := newEdgeRig(t, 2, tiny)
			errs := r.broken(t, oneWay(), func(ctx context.Context, e *Edges) error {
				x := exchange{graph: oneWay(), size: lengths[e.rank], placed: placed}
				a, _ := x.args(r.rig, e.rank)
				return e.AllToAll(ctx, 0, 5, a)
			})
			var length *LengthError
			require.ErrorAs(t, errs[1], &length)
			require.Equal(t, LengthError{Member: 0, Theirs: lengths[0], Mine: lengths[1]}, *length)
		}
	}
	loop := newDigraph(1)
	loop.join(0, 0, 0)
	e := newEdgeRig(t, 1, tiny).edges(t, loop)[0]
	var length *LengthError
	require.ErrorAs(t, e.AllToAll(testwatch.Context(t), 0, 0, &Args{Send: make([]byte, 3), Recv: make([]byte, 2)}), &length)
}

// TestFailedExchangeEndsAllExchangesWithItsCause: a member does not come to the
// last call, or leaves it when its context ends.
func TestFailedExchangeEndsAllExchangesWithItsCause(t *testing.T) {
	for _, n := range []int{2, 5} {
		for _, size := range []int{8, 20 * tiny.large} {
			for _, placed := range []int{0, -1} {
				r := newEdgeRig(t, n, tiny)
				x := exchange{graph: circle(n), size: size, placed: placed}
				errs := r.broken(t, x.graph, func(ctx context.Context, e *Edges) error {
					for i := range uint64(100) {
						if e.rank == n-1 && i == 3 {
							stop, cancel := context.WithTimeoutCause(ctx, time.Millisecond, errBroken)
							defer cancel()
							<-stop.Done()
							return errors.Join(x.make(stop, r.rig, e, i), errBroken) // all of the call may be there
						}
						if err := x.make(ctx, r.rig, e, i); err != nil {
							return err
						}
					}
					return nil
				})
				for m, err := range errs {
					if m < n-1 {
						require.True(t, errors.Is(err, errBroken) || errors.Is(err, ErrGone), "member %d of %d: %v", m, n, err)
					}
				}
			}
		}
	}
}

// TestMemberSurvivesHostileQueues: all data of other members is random, but seems
// to belong to the call. The member stays within its own memory and gets out.
func TestMemberSurvivesHostileQueues(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 5).Draw(rt, "members")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 4))
		r := newEdgeRig(t, n, tiny)
		x := exchange{graph: randomDigraph(random, n, 2*n), size: random.IntN(1200), placed: random.IntN(32), gather: random.IntN(2) == 0}
		edges := r.edges(rt, x.graph)
		e := edges[random.IntN(n)]
		for ends, mem := range r.mem {
			q, err := newQueue(mem, tiny.large)
			require.NoError(rt, err)
			if ends[0] == e.rank {
				q.taken.Store(random.Uint64N(3))
				continue
			}
			fill(mem, random.Uint64(), ends[0])
			for i := range q.lines {
				l := &q.lines[i]
				l.turn.Store(uint64(i))
				l.seq, l.chain = 0, x.chain()
				put64(l.data[:], uint64(x.size))
				if random.IntN(2) == 0 { // a place with one impossible word
					put64(l.data[8:], arenaRegion)
				}
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Millisecond)
		defer cancel()
		a, _ := x.args(r.rig, e.rank)
		_ = x.do(ctx, e, 0, a)
	})
}

// TestImpossibleQueueWordsReturnErrCorrupt: counts beyond the queue, and places that do
// not exist.
func TestImpossibleQueueWordsReturnErrCorrupt(t *testing.T) {
	for what, spoil := range map[string]func(q *queue, l *line){
		"number":      func(_ *queue, l *line) { l.turn.Store(1 + queueLines) },
		"region":      func(_ *queue, l *line) { put64(l.data[8:], arenaRegion+1) },
		"offset":      func(_ *queue, l *line) { put64(l.data[8:], arenaRegion); put64(l.data[16:], ^uint64(0)) },
		"second part": func(q *queue, l *line) { q.lines[2] = line{data: l.data}; put64(q.lines[2].data[8:], arenaRegion) },
	} {
		r := newEdgeRig(t, 2, tiny)
		e := r.edges(t, oneWay())[1]
		q := e.ins[0].queue
		for k := range uint64(3) {
			l := &q.lines[k]
			put64(l.data[:], 500)
			l.turn.Store(k)
		}
		spoil(&q, &q.lines[1])
		q.lines[2].turn.Store(2)
		require.ErrorIs(t, e.AllToAll(testwatch.Context(t), 0, 0, &Args{Recv: make([]byte, 500)}), ErrCorrupt, what)
	}
	for what, taken := range map[string][2]uint64{"more than there are": {7, 7}, "less than before": {largeBuffers, largeBuffers - 1}} {
		r := newEdgeRig(t, 2, tiny)
		e := r.edges(t, oneWay())[0]
		x := exchange{graph: oneWay(), size: tiny.pipe}
		var err error
		for i := uint64(0); i < 3*largeBuffers && err == nil; i++ {
			e.outs[0].queue.taken.Store(taken[i/(2*largeBuffers)])
			err = x.make(testwatch.Context(t), r.rig, e, i)
		}
		require.ErrorIs(t, err, ErrCorrupt, what)
	}
}

func TestImpossibleEdgesReturnErrors(t *testing.T) {
	r := newEdgeRig(t, 2, tiny)
	q := r.queues[0]
	for what, lists := range map[string][2][]int{
		"no queue in":  {{1}, nil},
		"no queue out": {nil, {1}},
		"nobody":       {{2}, nil},
		"less":         {nil, {-1}},
	} {
		_, err := q.Edges(lists[0], lists[1], nil)
		require.ErrorIs(t, err, ErrUnconnected, what)
	}
	_, err := q.Edges([]int{0}, nil, nil)
	require.ErrorContains(t, err, "sends to itself 0 times")
	good := lineAligned(queueSizeWith(tiny.large))
	require.NoError(t, q.LeadTo(1, good, r.bells[1]))
	require.Error(t, q.LeadTo(1, good[1:], r.bells[1]))
	require.Error(t, q.LeadFrom(1, append(good, good...)[8:], r.bells[1]))
	for what, c := range map[string]Config{"rank": {Rank: 1, Size: 1}, "size": {Size: 0}, "await": {Size: 1}} {
		if what != "await" {
			c.Await = waitOn(r.bells[0])
		}
		_, err := NewQueues(c)
		require.Error(t, err, what)
	}
}
