package window_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// A twin has two parts that all updates keep equal.
type twin struct {
	A int64
	_ [5]int64
	B int64
}

func (t twin) torn() bool { return t.A != t.B }

// addTwins registers the operator that adds twins.
func addTwins(ctx context.Context, r *testjob.Rank) window.Op[twin] {
	op, err := window.RegisterOp(ctx, r.World, "add", func(a, b twin) twin { return twin{A: a.A + b.A, B: a.B + b.B} })
	r.NoError(err)
	return op
}

func TestOperatorsOfTheProgramCompute(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		combineAtRandom(ctx, r, func(rnd *rand.Rand) int8 { return int8(rnd.Int()) })
		combineAtRandom(ctx, r, func(rnd *rand.Rand) uint16 { return uint16(rnd.Int()) })
		combineAtRandom(ctx, r, func(rnd *rand.Rand) float32 { return float32(rnd.IntN(100)) })
		combineAtRandom(ctx, r, func(rnd *rand.Rand) int64 { return rnd.Int64() })
		combineAtRandom(ctx, r, func(rnd *rand.Rand) complex64 { return complex(float32(rnd.IntN(9)), 1) })
		combineAtRandom(ctx, r, func(rnd *rand.Rand) complex128 { return complex(float64(rnd.IntN(9)), 1) })
		combineAtRandom(ctx, r, func(rnd *rand.Rand) [3]byte { return [3]byte{byte(rnd.Int()), 2, byte(rnd.Int())} })
		combineAtRandom(ctx, r, func(rnd *rand.Rand) [8]uint64 { return [8]uint64{rnd.Uint64(), 3, 7: rnd.Uint64()} })
		combineAtRandom(ctx, r, func(rnd *rand.Rand) bool { return rnd.IntN(2) == 0 })
	})
}

// combineAtRandom has each rank update elements of its right neighbor by an operator whose result depends on
// the order of its arguments.
func combineAtRandom[T comparable](ctx context.Context, r *testjob.Rank, draw func(*rand.Rand) T) {
	var zero T
	combine := func(element, operand T) T { // the first that is not zero stays, and a second one ends it
		if element == zero {
			return operand
		}
		return zero
	}
	op, err := window.RegisterOp(ctx, r.World, "first or none", combine)
	r.NoError(err)
	w := allocate[T](ctx, r, 7)
	rnd, target := rand.New(rand.NewPCG(uint64(r.Me), 3)), r.Right()
	model := [7]T{}
	for range 12 {
		at, v := rnd.IntN(6), draw(rnd)
		old, err := window.FetchOp(ctx, w, target, at, v, op)
		r.NoError(err)
		r.Equal(model[at], old)
		model[at] = combine(old, v)
		src, seen := []T{draw(rnd), draw(rnd)}, make([]T, 2)
		r.NoError(started(ctx)(window.StartGetAccumulate(ctx, w, target, at, src, seen, op)))
		r.Equal(model[at:at+2], seen)
		for i := range src {
			model[at+i] = combine(model[at+i], src[i])
		}
		r.NoError(window.Accumulate(ctx, w, target, 6, src[:1], window.Replace[T]()))
		model[6] = src[0]
	}
	got := make([]T, 7)
	r.NoError(window.GetAccumulate(ctx, w, target, 0, nil, got, window.NoOp[T]()))
	r.Equal(model[:], got)
	r.NoError(w.Fence(ctx))
	r.NoError(w.Free(ctx))
}

func TestMinLocAndMaxLocKeepTheLowestIndexOfEqualValues(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		type loc = window.Loc[float64]
		w := allocate[loc](ctx, r, 3)
		w.Local()[0] = loc{math.Inf(1), -1}
		w.Local()[1] = loc{math.Inf(-1), -1}
		r.NoError(r.World.Barrier(ctx))
		for i := range int64(8) {
			here := loc{float64(i * 3 % 8 / 2), int64(r.Me)*8 + i}
			_, err := window.FetchOp(ctx, w, 0, 0, here, window.MinLoc[float64]())
			r.NoError(err)
			r.NoError(window.Accumulate(ctx, w, 0, 1, []loc{here}, window.MaxLoc[float64]()))
		}
		_, err := window.FetchOp(ctx, w, 0, 2, loc{math.NaN(), int64(9 + r.Me)}, window.MinLoc[float64]())
		r.NoError(err)
		r.NoError(w.Fence(ctx))
		if r.Me == 0 {
			r.Equal(loc{0, 0}, w.Local()[0])
			r.Equal(loc{3, 2}, w.Local()[1])
			r.True(math.IsNaN(w.Local()[2].Value))
			r.EqualValues(9, w.Local()[2].Index)
		}
	})
}

// TestWideUpdatesUnderContentionAreExact also loads amid the updates.
func TestWideUpdatesUnderContentionAreExact(t *testing.T) {
	testjob.All(t, 1, contendForTwins)
}

func contendForTwins(ctx context.Context, r *testjob.Rank) {
	op := addTwins(ctx, r)
	w := allocate[twin](ctx, r, 3)
	words := allocate[int32](ctx, r, 1)
	plus, err := window.RegisterOp(ctx, r.World, "plus", func(a, b int32) int32 { return a + b })
	r.NoError(err)
	rounds := testwatch.Rounds(30)/r.N + 1
	var group sync.WaitGroup
	for g := range 2 {
		group.Go(func() {
			for i := range rounds {
				old, err := window.FetchOp(ctx, w, 0, i%3, twin{A: 1, B: 1}, op)
				fine(r, err)
				if old.torn() {
					r.Fail("half an update", "%v", old)
				}
				if i%2 == g {
					old, err = window.FetchOp(ctx, w, 0, (i+1)%3, twin{}, window.NoOp[twin]())
					fine(r, err)
					if old.torn() {
						r.Fail("half an update", "%v", old)
					}
				}
				fine(r, window.Accumulate(ctx, words, 0, 0, []int32{1}, plus))
				fine(r, window.AtomicAdd(ctx, words, 0, 0, 1))
			}
		})
	}
	group.Wait()
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		total := int64(0)
		for _, t := range w.Local() {
			r.False(t.torn())
			total += t.A
		}
		r.EqualValues(2*rounds*r.N, total)
		r.EqualValues(4*rounds*r.N, words.Local()[0])
	}
	r.NoError(r.World.Barrier(ctx))
}

func TestWideElementsOfAnySizeHaveManyLocks(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		countLocks[[2]uint64](ctx, r)
		countLocks[[3]uint64](ctx, r)
		countLocks[[4]uint64](ctx, r)
		countLocks[[8]uint64](ctx, r)
	})
}

func countLocks[T any](ctx context.Context, r *testjob.Rank) {
	w := allocate[T](ctx, r, 64)
	seen := map[int]bool{}
	for i := range 64 {
		seen[w.StripeOf(i)] = true
	}
	r.Len(seen, 16)
	r.NoError(w.Free(ctx))
}

func TestRegisterOpComparesNamesAndTypes(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		name := "sum"
		if r.Me == 1 {
			name = "product"
		}
		_, err := window.RegisterOp(ctx, r.World, name, func(a, b int64) int64 { return a + b })
		r.ErrorIs(err, runtime.ErrMismatch)
		r.ErrorContains(err, "product")
		_, err = window.RegisterOp(ctx, r.World, "wide", func(a, b [65]byte) [65]byte { return a })
		r.ErrorIs(err, window.ErrType)
		_, err = window.RegisterOp[int](ctx, r.World, "none", nil)
		r.ErrorIs(err, window.ErrOp)
		w := allocate[[9]uint64](ctx, r, 1)
		_, err = window.FetchOp(ctx, w, 0, 0, [9]uint64{}, window.Replace[[9]uint64]())
		r.ErrorIs(err, window.ErrType)
		_, err = window.FetchOp(ctx, w, 0, 0, [9]uint64{}, window.Op[[9]uint64]{})
		r.ErrorIs(err, window.ErrOp)
	})
}

// TestDeathAmidAWideUpdateLeavesTheOldOrTheNewValue has a rank die behind each step of an update.
func TestDeathAmidAWideUpdateLeavesTheOldOrTheNewValue(t *testing.T) {
	before, after := twin{A: 7, B: 7}, twin{A: 9, B: 9}
	for steps, want := range []twin{before, before, before, before, after} {
		for _, c := range []testjob.Config{{Provider: "loop", Ranks: 3}, {Provider: "shm", Ranks: 3}} {
			if testwatch.Race && c.Provider == "shm" {
				continue
			}
			err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
				op := addTwins(ctx, r)
				w := allocate[twin](ctx, r, 1)
				w.Local()[0] = before
				r.NoError(r.World.Barrier(ctx))
				if r.Me == 2 {
					r.NoError(window.DieAmidUpdate(ctx, w, 0, 0, steps, after, r.Die))
				}
				r.ErrorIs(repeat(ctx, func() error { return r.World.Barrier(ctx) }), runtime.ErrRankDead)
				if r.Me == 1 {
					old, err := window.FetchOp(ctx, w, 0, 0, twin{A: 1, B: 1}, op)
					r.NoError(err)
					r.Equal(want, old)
					old, err = window.FetchOp(ctx, w, 0, 0, twin{}, window.NoOp[twin]())
					r.NoError(err)
					r.Equal(twin{A: want.A + 1, B: want.B + 1}, old)
				}
			})
			require.ErrorContains(t, err, "ended without returning", "%v, %d steps", c, steps)
			require.NotContains(t, err.Error(), "Error Trace")
		}
	}
}

func TestKilledOriginsOfWideUpdates(t *testing.T) {
	if testwatch.Race {
		t.Skip("processes share no memory that the detector sees")
	}
	for range testwatch.ShortOr(3, 300) {
		out := testjob.Job{Provider: "shm", Ranks: 4}.Try(t, "updaters die")
		require.Len(t, out.Failures, 2, "%s\n%s", out.Summary(), out.Output)
	}
}

// updatersDie kills two ranks of four at random moments of their updates. The other two ranks go on.
func updatersDie(ctx context.Context, r *testjob.Rank) {
	op := addTwins(ctx, r)
	w := allocate[twin](ctx, r, 2)
	r.NoError(r.World.Barrier(ctx))
	if r.Me > 1 {
		time.AfterFunc(time.Duration(rand.IntN(4000))*time.Microsecond, r.Die)
	}
	inner := team.Of(r.World)
	for after := 0; after < 500; {
		old, err := window.FetchOp(ctx, w, 0, rand.IntN(2), twin{A: 1, B: 1}, op)
		r.NoError(err)
		r.False(old.torn(), "%v", old)
		if inner.Gone(inner.Members[2:3]) != nil && inner.Gone(inner.Members[3:4]) != nil {
			after++
		}
	}
}

// Another update comes between: the operator makes one itself.
func TestUpdateWithoutContextTriesAgain(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w := allocate[int64](ctx, r, 1)
		calls := 0
		op, err := window.RegisterOp(ctx, r.World, "late", func(a, b int64) int64 {
			if calls++; calls == 1 {
				r.NoError(window.AtomicAdd(ctx, w, r.Right(), 0, 10))
				r.NoError(w.Flush(ctx, r.Right()))
			}
			return a + b
		})
		r.NoError(err)
		var none context.Context // as nil
		r.NoError(window.Accumulate(none, w, r.Right(), 0, []int64{1}, op))
		r.Equal(2, calls)
		r.NoError(w.Fence(ctx))
		r.EqualValues(11, w.Local()[0])
		r.NoError(r.World.Barrier(ctx))
		r.NoError(w.Free(ctx))
	})
}
