package board

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/internal/testwatch"
)

var teams = []int{1, 2, 3, 4, 5, 7, 8}

// members lists teams. Under the race detector they are few, unless tests soak: more members
// make accesses at the same places.
func members() []int {
	if testwatch.Race && os.Getenv("GOPGAS_SOAK") != "1" {
		return []int{1, 2, 3, 5}
	}
	return teams
}

// play makes calls one after another, at all members at the same time.
func play(t require.TestingT, r *rig, calls []call) {
	watched, stop := testwatch.With(context.Background(), r.made.Load)
	defer stop()
	ctx, cancel := context.WithCancelCause(watched)
	defer cancel(nil)
	require.NoError(t, r.each(func(b *Board) error {
		for i := range calls {
			if err := b.one(ctx, r, i, &calls[i]); err != nil {
				cancel(err)
				return err
			}
		}
		return nil
	}))
}

// one makes and verifies a call at one member. It overwrites the member's input
// as soon as the call returns.
func (b *Board) one(ctx context.Context, r *rig, i int, c *call) error {
	a := c.args(r, b.rank)
	if err := c.make(ctx, b, uint64(i), a); err != nil {
		return fmt.Errorf("call %d, %v: member %d: %w", i, *c, b.rank, err)
	}
	if err := c.verify(b.n, b.rank, a); err != nil {
		return fmt.Errorf("call %d, %w", i, err)
	}
	fill(a.Send, 0, b.rank)
	fill(a.Recv, 1, b.rank)
	r.made.Add(1)
	return nil
}

// randomCalls returns calls of few elements, and now and then up to twenty times
// as many on memory that some, all or none reach.
func randomCalls(seed uint64, n, calls, elems int) []call {
	random := rand.New(rand.NewPCG(seed, 1))
	list := make([]call, calls)
	for i := range list {
		list[i] = call{kind: kind(random.IntN(int(kinds))), root: random.IntN(n), elems: random.IntN(elems),
			op: operators[random.IntN(len(operators))], seed: random.Uint64()}
		if random.IntN(8) == 0 {
			list[i].elems *= 20
			list[i].placed = random.IntN(3) - 1
		}
	}
	return list
}

func TestCollectivesAgreeWithASequentialProgram(t *testing.T) {
	for _, n := range members() {
		for k := range kinds {
			t.Run(fmt.Sprintf("%s/%d", kindNames[k], n), func(t *testing.T) {
				r := newRig(t, n, tiny)
				for i, bytes := range thresholds(tiny, n) {
					for _, op := range some(i) {
						var calls []call
						for shape := range 6 {
							if testwatch.Race && shape%3 != i%3 { // each length in two of the six shapes
								continue
							}
							calls = append(calls, call{kind: k, root: (i + shape) % n, elems: bytes / op.elem, op: op,
								seed: uint64(bytes*31 + shape), same: shape%2 == 1, placed: []int{0, -1, 0b10110101}[shape/2]})
						}
						play(t, r, calls)
					}
				}
			})
		}
	}
}

// some returns one operator in turn, or all when soaking.
func some(i int) []operator {
	if os.Getenv("GOPGAS_SOAK") == "1" {
		return operators
	}
	return operators[i%len(operators):][:1]
}

// thresholds returns lengths around all lengths where something changes.
func thresholds(with tuning, n int) (sizes []int) {
	for _, at := range []int{0, 16, inline / n, inline, with.small / n, with.small, with.large / n, with.large / max(n-1, 1), with.last, with.last / with.single, with.place, with.alone, with.alone / with.single, with.large, 4 * with.large, 9 * with.large} {
		for _, d := range []int{-16, 0, 16} {
			sizes = append(sizes, max(at+d, 0))
		}
	}
	return sizes
}

func TestRandomProgramsAgreeWithSequentialOnes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.SampledFrom(teams).Draw(rt, "members")
		with := tuning{
			small:     rapid.IntRange(0, 200).Draw(rt, "small"),
			large:     64 * rapid.IntRange(4, 16).Draw(rt, "large"),
			last:      rapid.IntRange(41, 256).Draw(rt, "last"),
			alone:     rapid.IntRange(0, 512).Draw(rt, "alone"),
			place:     rapid.IntRange(0, 512).Draw(rt, "place"),
			pipe:      rapid.IntRange(1, 256).Draw(rt, "pipe"),
			pipeMost:  rapid.IntRange(64, 1024).Draw(rt, "pipeMost"),
			lastOpens: rapid.IntRange(2, 8).Draw(rt, "lastOpens"),
			block:     rapid.IntRange(16, 128).Draw(rt, "block"),
			direct:    rapid.IntRange(0, 512).Draw(rt, "direct"),
			results:   rapid.IntRange(0, 512).Draw(rt, "results"),
			halves:    rapid.IntRange(0, 512).Draw(rt, "halves"),
			single:    rapid.IntRange(1, 4).Draw(rt, "single"),
		}
		calls := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) call {
			return call{
				kind:   kind(rapid.IntRange(0, int(kinds)-1).Draw(rt, "kind")),
				root:   rapid.IntRange(0, n-1).Draw(rt, "root"),
				elems:  rapid.IntRange(0, 300).Draw(rt, "elems"),
				op:     rapid.SampledFrom(operators).Draw(rt, "op"),
				seed:   rapid.Uint64().Draw(rt, "seed"),
				same:   rapid.Bool().Draw(rt, "same"),
				placed: rapid.SampledFrom([]int{0, -1, 1, 0b1010}).Draw(rt, "placed"),
			}
		}), 1, 60).Draw(rt, "calls")
		play(rt, newRig(t, n, with), calls)
	})
}

// TestLineOfAReductionStaysWhileTheRootReadsIt has the root of a broadcast run a whole round of lines
// ahead. The root of a long reduction still looks up on the lines where results lie.
func TestLineOfAReductionStaysWhileTheRootReadsIt(t *testing.T) {
	with := tiny
	with.small, with.alone, with.pipe, with.pipeMost = 0, 0, 13, 64
	for range testwatch.ShortOr(20, 200) {
		play(t, newRig(t, 8, with), []call{
			{kind: reduce, root: 6, elems: 6, op: operators[0], placed: -1},
			{kind: broadcast, root: 1, elems: 64 * lines / operators[0].elem, op: operators[0]},
		})
	}
}

// TestTenThousandCallsInARowAgree has every slot used again many times, by all roots
// in turn, without anything that keeps members together.
func TestTenThousandCallsInARowAgree(t *testing.T) {
	many := 10_000
	if testwatch.Race {
		many = 1000
	}
	for _, n := range []int{2, 3, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			play(t, newRig(t, n, tiny), randomCalls(uint64(n), n, many, 12))
		})
	}
}

// TestRootRunsAheadByTheNumberOfLinesAtMost: runs of calls in which the root, or
// all other members, do not wait.
func TestRootRunsAheadByTheNumberOfLinesAtMost(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		for _, k := range []kind{broadcast, gather, scatter, reduce, scan} {
			for _, elems := range []int{1, 10, 40} {
				calls := make([]call, testwatch.Rounds(500))
				for i := range calls {
					calls[i] = call{kind: k, root: 5 * i / len(calls) % n, elems: elems, op: operators[0], seed: uint64(i)}
				}
				play(t, newRig(t, n, tiny), calls)
			}
		}
	}
}

func TestCollectivesAgreeUnderTheMeasuredTuning(t *testing.T) {
	for _, n := range []int{2, 3, 4} {
		if testwatch.Race && n != 3 { // the lengths are hundreds of kilobytes
			continue
		}
		r := newRig(t, n, measured(n, n == 3))
		for k := range kinds {
			var calls []call
			for i, bytes := range []int{8, 40, 48, 4 << 10, 8 << 10, 16<<10 + 8, 64 << 10, 200_000} {
				for placed := range 2 {
					if testwatch.Race && placed != i%2 {
						continue
					}
					calls = append(calls, call{kind: k, root: i % n, elems: bytes / 8, op: operators[placed], seed: uint64(i), placed: -placed})
				}
			}
			play(t, r, calls)
		}
	}
}

// TestMembersWithACoreEachShareReductionsEarly counts turns: one member's work takes one, shares take three.
func TestMembersWithACoreEachShareReductionsEarly(t *testing.T) {
	for _, c := range []struct {
		kind    kind
		bytes   int
		crowded bool
		single  bool
		turns   uint64
	}{
		{allReduce, 1 << 10, false, false, 1}, {allReduce, 1 << 10, false, true, 3}, {allReduce, 4 << 10, false, false, 3},
		{allReduce, 4 << 10, true, true, 1}, {reduce, 4 << 10, false, false, 1}, {reduce, 4 << 10, false, true, 3},
		{reduce, 16 << 10, false, false, 3}, {reduce, 32 << 10, true, true, 2},
	} {
		r := newRig(t, 8, measured(8, c.crowded))
		made := call{kind: c.kind, elems: c.bytes / 8, op: operators[0], seed: 1}
		if c.single {
			made.seed = 4
		}
		play(t, r, []call{made})
		require.Equal(t, c.turns, r.boards[0].turn, "%+v", c)
	}
}

// TestMembersUsePlacedBuffersInPlace: none of their data passes through the large buffers.
func TestMembersUsePlacedBuffersInPlace(t *testing.T) {
	for _, n := range []int{2, 3} {
		for _, k := range []kind{allReduce, reduce, broadcast, gather, scatter, allGather, reduceScatter, allToAll} {
			for placed := range 2 {
				r := newRig(t, n, tiny)
				play(t, r, []call{{kind: k, elems: tiny.large, op: operators[0], seed: 1, placed: -placed}})
				staged := false
				for _, mem := range r.mem {
					staged = staged || !bytes.Equal(mem[HeadSize:], make([]byte, buffers*smallSize+largeBuffers*tiny.large))
				}
				require.Equal(t, placed == 0, staged, "%s of %d, placed %d", kindNames[k], n, placed)
			}
		}
	}
}

// TestWaitingMemberHasPostedItsLeftTurn: other members may need that to come to the
// turn that it waits for.
func TestWaitingMemberHasPostedItsLeftTurn(t *testing.T) {
	r := newRig(t, 2, tiny)
	c := call{kind: broadcast, elems: 1, op: operators[0]}
	for i := range 5 {
		require.NoError(t, r.boards[0].one(testwatch.Context(t), r, i, &c))
	}
	for i := range 5 {
		require.NoError(t, r.boards[1].one(testwatch.Context(t), r, i, &c))
	}
	require.Zero(t, r.boards[0].peers[1].left.Load())
	ended, cancel := context.WithCancelCause(context.Background())
	cancel(errBroken)
	require.ErrorIs(t, r.boards[1].one(ended, r, 5, &c), errBroken)
	require.Equal(t, uint64(5), r.boards[0].peers[1].left.Load())
}

// TestRootRunsAheadByItsUnits: the shorter the data, the more broadcasts complete at the root
// before another member takes part.
func TestRootRunsAheadByItsUnits(t *testing.T) {
	for size, want := range map[int]int{tiny.small + 1: buffers, tiny.large/widest + 1: buffers / 2, tiny.large / 2: 2 * largeBuffers, tiny.large: largeBuffers} {
		with := tiny
		with.pipe, with.pipeMost = tiny.large, tiny.large
		r := newRig(t, 2, with)
		ctx, cancel := context.WithCancel(t.Context())
		root, made := r.boards[0], 0
		root.await = func(context.Context, func() bool) error { cancel(); return context.Canceled }
		for ctx.Err() == nil {
			if err := root.Broadcast(ctx, uint64(made), 0, &Args{Elem: 1, Recv: make([]byte, size)}); err == nil {
				made++
			}
		}
		require.Equal(t, want, made, "%d bytes", size)
	}
}

// TestMembersRunFurtherAheadWhereTheRootAlonePosts: among three, data as long as a unit takes a
// unit of the root's in a broadcast. In a reduction it takes a large buffer of each other member's.
func TestMembersRunFurtherAheadWhereTheRootAlonePosts(t *testing.T) {
	with := measured(4, false)
	size := with.large / widest
	require.Greater(t, size, unitsMost)
	a := &Args{Elem: 1, Send: make([]byte, size), Recv: make([]byte, size), Combine: operators[0].combine}
	for name, c := range map[string]struct {
		member int
		call   func(b *Board, ctx context.Context, seq, chain uint64, a *Args) error
		want   int
	}{"Broadcast": {0, (*Board).Broadcast, buffers}, "Reduce": {1, (*Board).Reduce, largeBuffers}} {
		b := newRig(t, 3, with).boards[c.member]
		ctx, cancel := context.WithCancel(t.Context())
		b.await = func(context.Context, func() bool) error { cancel(); return context.Canceled }
		made := 0
		for ctx.Err() == nil {
			if err := c.call(b, ctx, uint64(made), 0, a); err == nil {
				made++
			}
		}
		require.Equal(t, c.want, made, name)
	}
}

// TestReadersTellAfterHalfTheTurnsThatTheRootRunsAhead: a member that makes no further call must not
// keep the root waiting for the lines or buffers that it has read.
func TestReadersTellAfterHalfTheTurnsThatTheRootRunsAhead(t *testing.T) {
	for size, turns := range map[int]int{inline: lines / 2, inline + 1: buffers / 2} {
		r, ctx := newRig(t, 2, measured(2, false)), testwatch.Context(t)
		for m := range 2 {
			for k := range turns {
				require.Zero(t, r.boards[1].peers[1].left.Load(), "%d bytes, turn %d of %d", size, k, m)
				require.NoError(t, r.boards[m].Broadcast(ctx, uint64(k), 0, &Args{Elem: 1, Recv: make([]byte, size)}))
			}
		}
		require.EqualValues(t, turns, r.boards[1].peers[1].left.Load(), "%d bytes", size)
	}
}
