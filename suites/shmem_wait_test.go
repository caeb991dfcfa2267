package suites

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestVector(t *testing.T) { everywhere(t, 3, vector) }

// vector: each element waits for a value of its own.
func vector(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, r.N)
	all := window.Elements[int64]{All: true}
	for from := range r.N {
		all.At, all.Values = append(all.At, from), append(all.Values, int64(10*from+1))
		r.NoError(window.AtomicStore(ctx, w, from, r.Me, int64(10*r.Me+1)))
	}
	_, _, err := window.WaitUntil(ctx, w, all)
	r.NoError(err)
	for from, v := range w.Local() {
		r.EqualValues(10*from+1, v)
	}
	r.NoError(w.Fence(ctx))
}

func TestSomeOf(t *testing.T) { everywhere(t, 4, someOf) }

// someOf: rank 0 handles arrivals in any order, each once.
func someOf(ctx context.Context, r *testjob.Rank) {
	const each = 5
	w := allocate[int32](ctx, r, each*r.N)
	if r.Me > 0 {
		for i := range each {
			r.NoError(window.AtomicStore(ctx, w, 0, r.Me*each+i, int32(r.Me)))
		}
	} else {
		left := map[int]bool{}
		for i := each; i < each*r.N; i++ {
			left[i] = true
		}
		for len(left) > 0 {
			wanted := window.Elements[int32]{Condition: window.NotEqual}
			for i := range left {
				wanted.At = append(wanted.At, i)
			}
			met, err := window.WaitSome(ctx, w, wanted, nil)
			r.NoError(err)
			r.NotEmpty(met)
			for _, i := range met {
				r.True(left[i], "element %d again", i)
				r.EqualValues(i/each, w.Local()[i])
				delete(left, i)
			}
		}
	}
	r.NoError(w.Fence(ctx))
}

func TestComparisons(t *testing.T) { everywhere(t, 2, comparisons) }

// comparisons: all six, with values below 0.
func comparisons(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, 2)
	steps := []struct {
		condition    window.Condition
		value, store int64
	}{
		{window.NotEqual, 0, -3}, {window.Less, -3, -4}, {window.AtMost, -9, -9},
		{window.Greater, -9, -8}, {window.AtLeast, 5, 6}, {window.Equal, -1, -1},
	}
	for i, s := range steps {
		if r.Me == 0 {
			r.NoError(window.AtomicStore(ctx, w, 1, 0, s.store))
			waitFor(ctx, r, w, 1, int64(i+1))
			continue
		}
		_, v, err := window.WaitUntil(ctx, w, window.Elements[int64]{At: []int{0}, Condition: s.condition, Value: s.value})
		r.NoError(err)
		r.Equal(s.store, v)
		r.NoError(window.AtomicStore(ctx, w, 0, 1, int64(i+1)))
	}
	r.NoError(w.Fence(ctx))
}

func TestPingPong(t *testing.T) { everywhere(t, 2, pingPong) }

// pingPong: data and an element as a flag, with a flush between, to and fro.
func pingPong(ctx context.Context, r *testjob.Rank) {
	data, flag := allocate[int64](ctx, r, 100), allocate[int64](ctx, r, 1)
	for round := int64(1); round <= 20; round++ {
		if r.Me == 1 {
			waitFor(ctx, r, flag, 0, round)
			r.Equal(filled(100, round), data.Local())
		}
		r.NoError(data.Put(ctx, 1-r.Me, 0, filled(100, round)))
		r.NoError(data.Order(1 - r.Me))
		r.NoError(window.AtomicStore(ctx, flag, 1-r.Me, 0, round))
		if r.Me == 0 {
			waitFor(ctx, r, flag, 0, round)
			r.Equal(filled(100, round), data.Local())
		}
	}
	r.NoError(flag.Fence(ctx))
}

func TestSignals(t *testing.T) { everywhere(t, 4, signals) }

// signals: all ranks start puts at rank 0, whose signals add to one element.
func signals(ctx context.Context, r *testjob.Rank) {
	const n, each = 50, 4
	data, count := allocate[int64](ctx, r, n*each*r.N), allocate[uint64](ctx, r, 1)
	under := make([]window.Request, each)
	bufs := make([][]int64, each)
	for i := range each {
		at := (r.Me*each + i) * n
		bufs[i] = filled(n, int64(at))
		var err error
		under[i], err = window.StartPutSignal(ctx, data, 0, at, bufs[i], window.SignalAt[uint64]{Window: count, Value: 1, Add: true})
		r.NoError(err)
	}
	r.NoError(window.WaitAll(ctx, under))
	if r.Me == 0 {
		_, v, err := window.WaitUntil(ctx, count, window.Elements[uint64]{At: []int{0}, Value: uint64(each * r.N)})
		r.NoError(err)
		r.EqualValues(each*r.N, v)
		r.Equal(filled(n*each*r.N, 0), data.Local())
	}
	r.NoError(data.Fence(ctx))
}

func TestChain(t *testing.T) { everywhere(t, 4, chain) }

// chain: a token goes along the ring by compare-and-swap, three times around.
func chain(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, 1)
	for lap := range int64(3) {
		token := lap*int64(r.N) + int64(r.Me) + 1
		if token > 1 {
			_, _, err := window.WaitUntil(ctx, w, window.Elements[int64]{At: []int{0}, Value: token - 1})
			r.NoError(err)
		}
		old := token - int64(r.N)
		if lap == 0 {
			old = 0
		}
		if r.Me == r.N-1 && lap == 0 {
			old = 0
		}
		seen, err := window.CompareSwap(ctx, w, r.Right(), 0, old, token)
		r.NoError(err)
		r.Equal(old, seen)
	}
	r.NoError(w.Fence(ctx))
}
