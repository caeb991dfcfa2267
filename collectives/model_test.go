package collectives_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
)

// An affine is the map x -> A x + B over the integers modulo 2^32. Maps compose, and
// do not commute.
type affine struct{ A, B uint32 }

func compose(f, g affine) affine { return affine{f.A * g.A, f.A*g.B + f.B} }

// A scenario is a call of random shape, the same at all members.
type scenario struct {
	name      string // of the trial
	n, root   int
	count     int   // elements of a block, or of the vector
	counts    []int // of blocks with lengths of their own
	offsets   []int
	packed    bool    // those blocks follow one another
	matrix    [][]int // AllToAllV: from i to j
	seed      uint64
	inPlace   bool
	buffers   bool // slices lie in the rank's heap
	algorithm string
	free      []func() error // at this rank
}

// element returns element i of what a rank brings.
func (s *scenario) element(rank, i int) affine {
	x := (s.seed ^ uint64(rank)<<32 ^ uint64(i)) * 0x9e3779b97f4a7c15
	return affine{uint32(x>>32) | 1, uint32(x)}
}

// brings returns n elements of a rank, from number at on.
func (s *scenario) brings(rank, at, n int) []affine {
	v := make([]affine, n)
	for i := range v {
		v[i] = s.element(rank, at+i)
	}
	return v
}

// combined returns the vectors of ranks lo to hi-1, combined in their order.
func (s *scenario) combined(lo, hi, at, n int) []affine {
	v := s.brings(lo, at, n)
	for r := lo + 1; r < hi; r++ {
		for i := range v {
			v[i] = compose(v[i], s.element(r, at+i))
		}
	}
	return v
}

// blocks are where all members' blocks lie, with gaps unless they are packed.
func (s *scenario) blocks() collectives.Blocks {
	if s.packed {
		return collectives.Blocks{Counts: s.counts}
	}
	return collectives.Blocks{Counts: s.counts, Offsets: s.offsets}
}

func (s *scenario) span() int {
	end := 0
	for i, c := range s.counts {
		end = max(end, s.offsets[i]+c)
	}
	return end
}

// memory returns n elements, in a buffer if the scenario says so.
func (s *scenario) memory(r *testjob.Rank, n int) []affine {
	if !s.buffers {
		return make([]affine, n)
	}
	b, err := collectives.Alloc[affine](r.World, n)
	r.NoError(err)
	s.free = append(s.free, b.Free)
	return b.Mem()
}

// release frees the scenario's buffers.
func (s *scenario) release(r *testjob.Rank) {
	for _, free := range s.free {
		r.NoError(free())
	}
	s.free = nil
}

// holding returns memory that holds v.
func (s *scenario) holding(r *testjob.Rank, v []affine) []affine {
	m := s.memory(r, len(v))
	copy(m, v)
	return m
}

func (s *scenario) opts() []collectives.Option {
	if s.algorithm == "" {
		return nil
	}
	return []collectives.Option{collectives.WithAlgorithm(s.algorithm)}
}

// A trial makes a call of the scenario, and checks what it gives. call is nil
// where it only names the algorithms.
type trial struct {
	name string
	call func(s *scenario, r *testjob.Rank) (c collectives.Call, check func())
}

// matches checks a result.
func matches(r *testjob.Rank, s *scenario, want, got []affine) {
	if !slices.Equal(want, got) {
		r.Equal(want, got, "%+v", *s)
	}
}

var composition = collectives.NewOp("compose", false, compose)

// xorOp commutes, so that all algorithms can do it.
var xorOp = collectives.NewOp("xor", true, func(a, b affine) affine { return affine{a.A ^ b.A, a.B ^ b.B} })

// trials are all collectives. op is the operator, fold its meaning for ranks lo to
// hi-1.
func trials(op collectives.Op[affine], fold func(s *scenario, lo, hi, at, n int) []affine) []trial {
	return []trial{
		{"Broadcast", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			data := s.memory(r, s.count)
			want := s.brings(s.root, 0, s.count)
			if r.Me == s.root {
				copy(data, want)
			}
			return collectives.BroadcastCall(s.root, data, s.opts()...), func() { matches(r, s, want, data) }
		}},
		{"Reduce", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			in, out := s.holding(r, s.brings(r.Me, 0, s.count)), []affine(nil)
			if r.Me == s.root {
				if out = in; !s.inPlace {
					out = s.memory(r, s.count)
				}
			}
			return collectives.ReduceCall(s.root, op, in, out, s.opts()...), func() {
				if r.Me == s.root {
					matches(r, s, fold(s, 0, s.n, 0, s.count), out)
				}
			}
		}},
		{"AllReduce", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			in := s.holding(r, s.brings(r.Me, 0, s.count))
			out := in
			if !s.inPlace {
				out = s.memory(r, s.count)
			}
			return collectives.AllReduceCall(op, in, out, s.opts()...), func() {
				matches(r, s, fold(s, 0, s.n, 0, s.count), out)
				if !s.inPlace {
					matches(r, s, s.brings(r.Me, 0, s.count), in)
				}
			}
		}},
		{"Scan", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			in := s.holding(r, s.brings(r.Me, 0, s.count))
			out := in
			if !s.inPlace {
				out = s.memory(r, s.count)
			}
			return collectives.ScanCall(op, in, out, s.opts()...), func() {
				matches(r, s, fold(s, 0, r.Me+1, 0, s.count), out)
			}
		}},
		{"ExScan", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			in, out := s.holding(r, s.brings(r.Me, 0, s.count)), s.memory(r, s.count)
			return collectives.ExScanCall(op, in, out, s.opts()...), func() {
				want := make([]affine, s.count)
				if r.Me > 0 {
					want = fold(s, 0, r.Me, 0, s.count)
				}
				matches(r, s, want, out)
			}
		}},
		{"ReduceScatter", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			in := s.holding(r, s.brings(r.Me, 0, s.n*s.count))
			out := s.memory(r, s.count)
			if s.inPlace {
				out = in[r.Me*s.count:][:s.count]
			}
			return collectives.ReduceScatterCall(op, in, out, s.opts()...), func() {
				matches(r, s, fold(s, 0, s.n, r.Me*s.count, s.count), out)
			}
		}},
		{"ReduceScatterV", func(s *scenario, r *testjob.Rank) (collectives.Call, func()) {
			in := s.holding(r, s.brings(r.Me, 0, s.span()))
			out := s.memory(r, s.counts[r.Me])
			return collectives.ReduceScatterVCall(op, in, s.blocks(), out, s.opts()...), func() {
				matches(r, s, fold(s, 0, s.n, s.offsets[r.Me], s.counts[r.Me]), out)
			}
		}},
	}
}

// ways are lengths in bytes. Around them a message changes between slot, ring and pieces, and a
// board changes its way.
var ways = [][]int{{0, 8, 16, 40, 48, 88}, {4 << 10, 8 << 10, 16 << 10}, {64 << 10}}

// edges are these lengths, and those of messages of several blocks.
var edges = append(slices.Concat(ways...), 256<<10, 512<<10)

// draw makes a scenario of n ranks at an edge of at most so many bytes.
func draw(rnd *rand.Rand, n int, most int) *scenario {
	below := slices.DeleteFunc(slices.Clone(edges), func(edge int) bool { return edge > most })
	return drawAt(rnd, n, below[rnd.IntN(len(below))])
}

// drawAt makes a scenario of n ranks whose longest buffer has about an edge's bytes.
func drawAt(rnd *rand.Rand, n int, edge int) *scenario {
	count := max(0, edge/8+rnd.IntN(3)-1)
	if rnd.IntN(2) == 0 {
		count = (count + n - 1) / n
	}
	s := &scenario{n: n, root: rnd.IntN(n), count: count, seed: rnd.Uint64(), inPlace: rnd.IntN(2) == 0, buffers: rnd.IntN(2) == 0,
		packed: rnd.IntN(2) == 0}
	at := 0
	for range n {
		c := rnd.IntN(2*count/n + 2)
		if !s.packed {
			at += rnd.IntN(2) // a gap
		}
		s.counts, s.offsets = append(s.counts, c), append(s.offsets, at)
		at += c
		var row []int
		for range n {
			row = append(row, rnd.IntN(2*count/n+2))
		}
		s.matrix = append(s.matrix, row)
	}
	return s
}

func xored(s *scenario, lo, hi, at, n int) []affine {
	v := s.brings(lo, at, n)
	for r := lo + 1; r < hi; r++ {
		for i := range v {
			e := s.element(r, at+i)
			v[i] = affine{v[i].A ^ e.A, v[i].B ^ e.B}
		}
	}
	return v
}

func allTrials() []trial {
	list := moves()
	list = append(list, trials(composition, (*scenario).combined)...)
	for _, tr := range trials(xorOp, xored) {
		tr.name += " of what commutes"
		list = append(list, tr)
	}
	return list
}

// sample is how often a test draws a scenario for each pair of call and way.
func sample() int {
	if testjob.Soak() {
		return 40
	}
	return 1
}

// TestCallsAgreeWithASequentialModel makes every call on every transport: as it is chosen,
// in each way, and by an algorithm. A seed also pairs transports and numbers of members.
// When soaking, it makes every call by every algorithm on every pair.
func TestCallsAgreeWithASequentialModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, c := range testjob.Matrix(strconv.FormatUint(seed, 10), 1) {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				rnd := rand.New(rand.NewPCG(seed, 1)) // the same at all ranks
				list := allTrials()
				for _, i := range rnd.Perm(len(list)) { // any call may be a team's first
					tryWays(ctx, r, list[i], rnd)
					tryAlgorithms(ctx, r, list[i], rnd)
				}
			})
		})
	}
}

// tryWays makes the call of a trial as it is chosen, in each way.
func tryWays(ctx context.Context, r *testjob.Rank, tr trial, rnd *rand.Rand) {
	for _, way := range ways {
		for range sample() {
			try(ctx, r, tr, drawAt(rnd, r.N, way[rnd.IntN(len(way))]))
		}
	}
}

// tryAlgorithms makes it by one algorithm, or by all when soaking.
func tryAlgorithms(ctx context.Context, r *testjob.Rank, tr trial, rnd *rand.Rand) {
	empty, _ := tr.call(drawAt(rnd, r.N, 0), r)
	names := empty.Algorithms(nil)
	if !testjob.Soak() {
		names = names[rnd.IntN(len(names)):][:1]
	}
	for _, name := range names {
		for range sample() {
			s := draw(rnd, r.N, 64<<10)
			s.algorithm = name
			try(ctx, r, tr, s)
		}
	}
}

// try makes a scenario's call, unless its algorithm cannot.
func try(ctx context.Context, r *testjob.Rank, tr trial, s *scenario) {
	s.name = tr.name
	c, check := tr.call(s, r)
	plan, err := collectives.Plan(ctx, r.World, c)
	if s.algorithm != "" && err != nil {
		r.ErrorIs(err, collectives.ErrAlgorithm, "%s by %s", s.name, s.algorithm)
		return
	}
	r.NoError(err, "%+v", *s)
	r.NoError(plan.Run(ctx), "%+v", *s)
	check()
	r.NoError(plan.Free(ctx))
	r.NoError(collectives.Barrier(ctx, r.World), "others may still read what is freed now")
	s.release(r)
}
