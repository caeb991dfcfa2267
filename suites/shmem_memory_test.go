package suites

import (
	"context"
	"sync"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/window"
)

func TestStrides(t *testing.T) { everywhere(t, 2, strides) }

// strides: every second number to every third element, and back from there.
func strides(ctx context.Context, r *testjob.Rank) {
	const n = 30
	w := allocate[int16](ctx, r, 3*n)
	src, back := make([]int16, 2*n), make([]int16, 4*n)
	for i := range src {
		src[i] = int16(100*r.Me + i)
	}
	r.NoError(w.PutBlocks(ctx, r.Right(), 0, window.Strided(n, 1, 3), src, window.Strided(n, 1, 2)))
	r.NoError(w.Flush(ctx, r.Right()))
	r.NoError(w.GetBlocks(ctx, r.Right(), 0, window.Strided(n, 1, 3), back, window.Strided(n, 1, 4)))
	for i, v := range back {
		want := int16(0)
		if i%4 == 0 {
			want = src[i/2]
		}
		r.Equal(want, v)
	}
	r.NoError(w.Fence(ctx))
}

func TestContexts(t *testing.T) { everywhere(t, 3, contexts) }

// contexts: a queue for each goroutine. Each completes its own puts and counts them.
func contexts(ctx context.Context, r *testjob.Rank) {
	const goroutines, n = 4, 64
	w, done := allocate[int64](ctx, r, goroutines*n), allocate[int64](ctx, r, 1)
	var all sync.WaitGroup
	errs := make([]error, goroutines)
	for g := range goroutines {
		all.Go(func() { errs[g] = putThroughQueue(ctx, r, w, done, g*n, filled(n, int64(1000*r.Me+g*n))) })
	}
	all.Wait()
	for _, err := range errs {
		r.NoError(err)
	}
	waitFor(ctx, r, done, 0, goroutines)
	r.Equal(filled(goroutines*n, int64(1000*r.Left())), w.Local())
	r.NoError(w.Fence(ctx))
}

func putThroughQueue(ctx context.Context, r *testjob.Rank, w, done *window.Window[int64], at int, src []int64) error {
	q, err := window.NewQueue(r.World)
	if err != nil {
		return err
	}
	through, err := w.Through(q)
	if err == nil {
		err = through.Put(ctx, r.Right(), at, src)
	}
	if err == nil {
		err = q.FlushAll(ctx)
	}
	if err == nil {
		err = window.AtomicAdd(ctx, done, r.Right(), 0, 1)
	}
	if err == nil {
		err = q.Close(ctx)
	}
	return err
}

func TestPipelined(t *testing.T) { everywhere(t, 3, pipelined) }

// pipelined: halves of a vector go around the ring through a queue each; each rank adds its own.
func pipelined(ctx context.Context, r *testjob.Rank) {
	const half = 200
	w, steps := allocate[int64](ctx, r, 2*half*r.N), allocate[uint64](ctx, r, 2)
	sum := filled(2*half, int64(r.Me))
	for part := range 2 {
		q, err := window.NewQueue(r.World)
		r.NoError(err)
		data, err := w.Through(q)
		r.NoError(err)
		words, err := steps.Through(q)
		r.NoError(err)
		mine := filled(2*half, int64(r.Me))[part*half:][:half]
		for step := range r.N - 1 {
			at := (2*step + part) * half
			r.NoError(window.PutSignal(ctx, data, r.Right(), at, mine, window.SignalAt[uint64]{Window: words, Index: part, Value: 1, Add: true}))
			_, _, err = window.WaitUntil(ctx, steps, window.Elements[uint64]{At: []int{part}, Condition: window.AtLeast, Value: uint64(step + 1)})
			r.NoError(err)
			mine = append([]int64(nil), w.Local()[at:at+half]...)
			for i, v := range mine {
				sum[part*half+i] += v
			}
		}
		r.NoError(q.Close(ctx))
	}
	for i, v := range sum {
		r.EqualValues(r.N*i+r.N*(r.N-1)/2, v)
	}
	r.NoError(w.Fence(ctx))
}

func TestWeb(t *testing.T) { everywhere(t, 4, web) }

// web: every rank tells every rank through one queue, and waits for all.
func web(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, r.N)
	q, err := window.NewQueue(r.World)
	r.NoError(err)
	through, err := w.Through(q)
	r.NoError(err)
	all := window.Elements[int64]{Condition: window.NotEqual, All: true}
	for to := range r.N {
		all.At = append(all.At, to)
		r.NoError(window.AtomicStore(ctx, through, to, r.Me, int64(r.Me+1)))
	}
	r.NoError(q.FlushAll(ctx))
	_, _, err = window.WaitUntil(ctx, w, all)
	r.NoError(err)
	r.Equal(filled(r.N, 1), w.Local())
	r.NoError(w.Fence(ctx))
	r.NoError(q.Close(ctx))
}

func TestTried(t *testing.T) { everywhere(t, 2, tried) }

// tried: two goroutines of each rank try one lock, and count under it.
func tried(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, 1)
	var own sync.Mutex // a rank holds a lock once
	var all sync.WaitGroup
	errs := make([]error, 2)
	for g := range errs {
		all.Go(func() {
			for i := 0; i < 10 && errs[g] == nil; {
				own.Lock()
				var ok bool
				ok, errs[g] = countIfFree(ctx, w)
				own.Unlock()
				if ok {
					i++
				}
				if errs[g] == nil {
					errs[g] = context.Cause(ctx)
				}
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		r.NoError(err)
	}
	r.NoError(w.Fence(ctx))
	if r.Me == 0 {
		r.EqualValues(20*r.N, w.Local()[0])
	}
	r.NoError(w.Fence(ctx))
}

// countIfFree adds 1 under the lock of rank 0, if that is free.
func countIfFree(ctx context.Context, w *window.Window[int64]) (bool, error) {
	held, ok, err := w.TryLock(ctx, 0, window.Exclusive)
	if err != nil || !ok {
		return false, err
	}
	v, err := w.GetValue(ctx, 0, 0)
	if err == nil {
		err = w.PutValue(ctx, 0, 0, v+1)
	}
	if e := held.Unlock(ctx); err == nil {
		err = e
	}
	return err == nil, err
}

func TestTranslated(t *testing.T) { everywhere(t, 4, translated) }

// translated: the ranks of a team of every second rank, in the world and back.
func translated(ctx context.Context, r *testjob.Rank) {
	team, err := r.World.Split(ctx, r.Me%2, -r.Me) // the last rank first
	r.NoError(err)
	for i := range team.Size() {
		world, err := team.Translate(i, r.World)
		r.NoError(err)
		r.Equal(r.N-2+r.Me%2-2*i, world)
		back, err := r.World.Translate(world, team)
		r.NoError(err)
		r.Equal(i, back)
	}
	w, err := window.Allocate[int64](ctx, team, 1)
	r.NoError(err)
	r.NoError(w.PutValue(ctx, (team.Rank()+1)%team.Size(), 0, int64(r.Me+1)))
	r.NoError(w.Fence(ctx))
	r.EqualValues((r.Me+2)%4+1, w.Local()[0])
	r.NoError(w.Free(ctx))
	r.NoError(team.Free(ctx))
}

func TestGrown(t *testing.T) { everywhere(t, 3, grown) }

// grown: a window grows, shrinks and keeps its content.
func grown(ctx context.Context, r *testjob.Rank) {
	w := allocate[int64](ctx, r, 4)
	for n := 8; n <= 64; n *= 2 {
		r.NoError(w.Put(ctx, r.Right(), n/4, filled(n/4, int64(n))))
		next, err := w.Realloc(ctx, n)
		r.NoError(err)
		w = next
		r.Equal(filled(n/4, int64(n)), w.Local()[n/4:n/2])
	}
	w, err := w.Realloc(ctx, 3)
	r.NoError(err)
	r.Equal([]int64{0, 0, 8}, w.Local())
	r.NoError(w.Free(ctx))
}

func TestStartedAtomics(t *testing.T) { everywhere(t, 3, startedAtomics) }

// startedAtomics: each rank has several fetches of one counter under way. All values come once.
func startedAtomics(ctx context.Context, r *testjob.Rank) {
	const each = 20
	w, seen := allocate[int64](ctx, r, 1), allocate[int64](ctx, r, 3*each)
	under, got := make([]window.Request, each), make([]int64, each)
	for i := range each {
		var err error
		under[i], err = window.StartFetchOp(ctx, w, 0, 0, 1, window.Sum[int64](), &got[i])
		r.NoError(err)
	}
	r.NoError(window.WaitAll(ctx, under))
	for i, v := range got {
		r.True(i == 0 || v > got[i-1], "in the order of the calls")
		r.NoError(window.AtomicAdd(ctx, seen, 0, int(v), 1))
	}
	r.NoError(seen.Fence(ctx))
	if r.Me == 0 {
		for v, times := range seen.Local() {
			r.EqualValues(1, times, "value %d", v)
		}
	}
	r.NoError(seen.Fence(ctx))
}

func TestVariables(t *testing.T) { everywhere(t, 2, variables) }

// variables: a struct holds a program's symmetric variables.
func variables(ctx context.Context, r *testjob.Rank) {
	type statics struct {
		Flag  int64
		Table [10]float32
		Count uint32
	}
	w := allocate[statics](ctx, r, 1)
	mine := &w.Local()[0]
	flag, err := window.Variable(w, &mine.Flag)
	r.NoError(err)
	table, err := window.Array(w, mine.Table[:])
	r.NoError(err)
	count, err := window.Variable(w, &mine.Count)
	r.NoError(err)
	r.NoError(table.Put(ctx, r.Right(), 2, []float32{1, 2, 3}))
	r.NoError(window.AtomicAdd(ctx, count, r.Right(), 0, 5))
	r.NoError(table.Flush(ctx, r.Right()))
	r.NoError(window.AtomicStore(ctx, flag, r.Right(), 0, 1))
	waitFor(ctx, r, flag, 0, 1)
	r.Equal([10]float32{2: 1, 3: 2, 4: 3}, mine.Table)
	r.EqualValues(5, mine.Count)
	r.NoError(w.Fence(ctx))
}

func TestCollected(t *testing.T) { everywhere(t, 4, collected) }

// collected: each rank gives a block whose length only it knows, and spreads another with strides.
func collected(ctx context.Context, r *testjob.Rank) {
	out := make([]int64, r.N*(r.N-1)/2)
	counts, err := collectives.Collect(ctx, r.World, filled(r.Me, int64(100*r.Me)), out)
	r.NoError(err)
	r.Equal([]int{0, 1, 2, 3}, counts)
	r.Equal([]int64{100, 200, 201, 300, 301, 302}, out)
	in, spread := filled(2*r.N, int64(10*r.Me)), make([]int64, 3*r.N)
	r.NoError(collectives.AllToAllStrided(ctx, r.World, 1, in, 2, spread, 3))
	for from := range r.N {
		r.EqualValues(10*from+2*r.Me, spread[3*from])
	}
}
