package litmus

import (
	"context"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/window"
)

func TestStoreBuffering(t *testing.T) {
	if testwatch.Race {
		t.Skip("two ranks access one element without order, which is the point")
	}
	everywhere(t, "store buffering")
}

// storeBuffering: each of two ranks puts at its peer, flushes, and reads its own
// element, at which the peer puts. Forbidden: both find nothing.
func storeBuffering(ctx context.Context, r *testjob.Rank) {
	n := rounds(400)
	mapped, err := isMapped(ctx, r)
	r.NoError(err)
	if mapped {
		n = rounds(5_000)
	}
	cells := allocate[int64](ctx, r, n*line)
	seen := allocate[int64](ctx, r, n)
	meet := allocate[int64](ctx, r, 1)
	mine := cells.Local()
	other := r.Right()
	enough := time.Now().Add(time.Duration(rounds(1)) * time.Second)
	for i := range n {
		last := r.Me == 0 && time.Now().After(enough) // on a busy machine
		if rendezvous(ctx, r, meet, int64(i+1), last) {
			n = i
			break
		}
		r.NoError(cells.PutValue(ctx, other, i*line, 1))
		r.NoError(cells.Flush(ctx, other))
		v, err := cells.GetValue(ctx, r.Me, i*line)
		r.NoError(err)
		seen.Local()[i] = v
	}
	r.NoError(seen.Fence(ctx))
	theirs := make([]int64, n)
	r.NoError(seen.Get(ctx, other, 0, theirs))
	for i, v := range theirs {
		if v == 0 && seen.Local()[i] == 0 {
			r.FailNow("both flushes returned before either put was visible", "round %d of %d", i, n)
		}
		r.EqualValues(1, mine[i*line])
	}
	r.NoError(seen.Fence(ctx))
}

// line is the distance in elements of two that share no cache line.
const line = 16

func isMapped(ctx context.Context, r *testjob.Rank) (bool, error) {
	w := allocate[int64](ctx, r, 1)
	_, err := w.Shared(ctx, r.Right())
	return err == nil, w.Free(ctx)
}

// lastRound marks a round that is not run any more.
const lastRound = int64(1) << 40

// rendezvous lets both ranks go at nearly the same moment: each spins, unless its
// peer does not even run. It reports whether either rank has ended its last
// round.
func rendezvous(ctx context.Context, r *testjob.Rank, w *window.Window[int64], round int64, last bool) bool {
	mark := round
	if last {
		mark += lastRound
	}
	r.NoError(window.AtomicStore(ctx, w, r.Right(), 0, mark))
	r.NoError(w.Flush(ctx, r.Right()))
	for spins := 1; ; spins++ {
		v, err := window.AtomicLoad(ctx, w, r.Me, 0)
		r.NoError(err)
		if v >= round {
			// The peer may be a round ahead: its last round is not this one.
			return last || v == lastRound+round
		}
		if spins%200 == 0 {
			r.NoError(context.Cause(ctx))
			goruntime.Gosched()
		}
	}
}

func TestFence(t *testing.T) { everywhere(t, "fence") }

// fence: each rank puts at all ranks, fences, and reads its own elements. Forbidden: an old value.
func fence(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, r.N)
	for round := range int64(rounds(60)) {
		for to := range r.N {
			r.NoError(w.PutValue(ctx, to, r.Me, round*1000+int64(r.Me)))
		}
		r.NoError(w.Fence(ctx))
		for from, v := range w.Local() {
			r.Equal(round*1000+int64(from), v)
		}
		r.NoError(w.Fence(ctx))
	}
}

func TestOrder(t *testing.T) { everywhere(t, "order") }

// order: rank 0 puts, orders, and sets a flag; rank 1 polls the flag in its own
// memory. Forbidden: the flag without the put before it.
func order(ctx context.Context, r *testjob.Rank) {
	n := rounds(300)
	w := allocate[int64](ctx, r, 2*n)
	for i := range n {
		if r.Me == 0 {
			r.NoError(w.PutValue(ctx, 1, 2*i, 1))
			r.NoError(w.Order(1))
			r.NoError(window.AtomicStore(ctx, w, 1, 2*i+1, 1))
			continue
		}
		for flag := int64(0); flag == 0; {
			var err error
			flag, err = window.AtomicLoad(ctx, w, 1, 2*i+1)
			r.NoError(err)
			goruntime.Gosched()
		}
		v, err := w.GetValue(ctx, 1, 2*i)
		r.NoError(err)
		if v != 1 {
			r.FailNow("the later operation went ahead", "round %d", i)
		}
	}
	r.NoError(w.Fence(ctx))
}

func TestSourceReuse(t *testing.T) { everywhere(t, "source reuse") }

// sourceReuse: a rank overwrites the source of a put that has returned.
// Forbidden: the target gets data that the rank wrote over the source.
func sourceReuse(ctx context.Context, r *testjob.Rank) {
	for _, n := range []int{1, 100, 5000, 40_000} {
		w := allocate[uint64](ctx, r, n)
		src := make([]uint64, n)
		for round := 1; round <= rounds(20); round++ {
			for i := range src {
				src[i] = uint64(round)
			}
			r.NoError(w.Put(ctx, r.Right(), 0, src))
			for i := range src {
				src[i] = 0xdead
			}
			r.NoError(w.Fence(ctx))
			for i, v := range w.Local() {
				if v != uint64(round) {
					r.FailNow("the source was read after Put had returned", "element %d is %x", i, v)
				}
			}
			r.NoError(w.Fence(ctx))
		}
		r.NoError(w.Free(ctx))
	}
}
