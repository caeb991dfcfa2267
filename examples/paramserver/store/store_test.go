//go:build linux

package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/examples/paramserver/store"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestMain(m *testing.M) { testjob.Main(m, bodies) }

// tensors are four of different lengths; pieces cut two of them.
var tensors = []int{1000, 1010, 1800, 1807}

const piece = 300

// A technique in a mode makes so many user-space copies of a byte, pushed and pulled.
type technique struct {
	mode   store.Mode
	copies int
	store.Technique
}

var techniques = map[string]technique{
	"fastest":       {store.Elastic, 0, store.Technique{}},
	"poll":          {store.Elastic, 0, store.Technique{Poll: true}},
	"read":          {store.Sync, 0, store.Technique{Read: true}},
	"read 1 copy":   {store.Sync, 2, store.Technique{Read: true, Copies: 1, Buffers: 3}},
	"read 2 copies": {store.Sync, 4, store.Technique{Read: true, Copies: 2}},
	"elastic read":  {store.Elastic, 1, store.Technique{Read: true, Buffers: 2}},
	"async read":    {store.Async, 3, store.Technique{Read: true, Copies: 1}},
	"ring":          {store.Elastic, 1, store.Technique{Ring: true}},
	"apart":         {store.Elastic, 0, store.Technique{Apart: true, Buffers: 2}},
	"1 copy":        {store.Elastic, 2, store.Technique{Copies: 1}},
	"2 copies":      {store.Elastic, 4, store.Technique{Copies: 2, Buffers: 1}},
	"loose":         {store.Elastic, 0, store.Technique{Loose: true, Buffers: 4}},
	"all by hand":   {store.Elastic, 1, store.Technique{Poll: true, Apart: true, Ring: true}},
}

// options are those of a drill.
func (t technique) options(servers int, tensors []int, piece int) store.Options {
	return store.DrillOptions(servers, tensors, piece, t.mode, t.Technique)
}

// run runs both parts of a rank: the server, and the worker until it leaves.
func run(ctx context.Context, st *store.Store, work func(*store.Worker) error) (result store.Result, err error) {
	var wait sync.WaitGroup
	var served error
	if st.Serves() {
		wait.Go(func() { result, served = st.Serve(ctx) })
	}
	if w := st.Worker(); w != nil {
		if err = work(w); err == nil {
			err = w.Leave(ctx, 3, 5)
		}
	}
	wait.Wait()
	if err == nil {
		err = served
	}
	return result, err
}

func servers(ranks int) int { return max(1, ranks/3) }

// TestEachTechniqueAppliesGradientsWhole runs two drills of each technique, and compares all
// weights, the workers' copies of them, and the number of copies.
func TestEachTechniqueAppliesGradientsWhole(t *testing.T) {
	names := slices.Sorted(maps.Keys(techniques))
	for i, name := range names {
		technique := techniques[name]
		configs := append(testjob.Share(t.Name(), 4, i, len(names)), testjob.Config{Provider: "loop", Ranks: 1 + i%2})
		for _, c := range configs {
			t.Run(fmt.Sprint(name, "/", c), func(t *testing.T) {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					st, err := store.New(ctx, r.Job, technique.options(servers(r.N), tensors, piece), make([]float32, 1807))
					r.NoError(err)
					for drill := range 2 {
						result, err := run(ctx, st, func(w *store.Worker) error { return w.Drill(ctx, 3, true) })
						r.NoError(err)
						if r.Me == 0 {
							r.Equal(store.Result{Right: 3 * st.Workers(), Tested: 5 * st.Workers()}, result)
						}
						if st.Serves() {
							r.NoError(st.Check(true))
							r.Equal(slices.Repeat([]int{3 * (drill + 1)}, st.Workers()), st.Applied())
						}
					}
					if !technique.Ring {
						r.Equal(!technique.Loose && (technique.Copies == 0 || !st.Serves()), st.InWindow())
					}
					all := make([]uint64, 1)
					for _, b := range exchange(ctx, r, st.Copied()) {
						all[0] += b
					}
					r.Equal(uint64(technique.copies*6*1807*4*st.Workers()), all[0])
					if w := st.Worker(); w != nil && st.Workers() == 1 {
						for _, v := range w.Weights() {
							r.EqualValues(21, v) // 1 + ... + 6
						}
					}
					r.NoError(st.Free(ctx))
				})
			})
		}
	}
}

func exchange(ctx context.Context, r *testjob.Rank, mine uint64) (all []uint64) {
	texts, err := r.World.Exchange(ctx, fmt.Append(nil, mine))
	r.NoError(err)
	for _, text := range texts {
		var n uint64
		_, err := fmt.Sscan(string(text), &n)
		r.NoError(err)
		all = append(all, n)
	}
	return all
}

// TestWorkersStayWithinTheBound has one worker run ahead as far as it may, while the
// others wait for it.
func TestWorkersStayWithinTheBound(t *testing.T) {
	for _, bound := range []int{0, 1, 3} {
		testjob.EachSample(t, 4, func(t *testing.T, c testjob.Config) {
			ahead := make(chan struct{}) // worker 0 is
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				o := store.DrillOptions(1, tensors, piece, store.Elastic, store.Technique{})
				o.Mode, o.Staleness = store.Async, bound
				st, err := store.New(ctx, r.Job, o, make([]float32, 1807))
				r.NoError(err)
				result, err := run(ctx, st, func(w *store.Worker) error {
					if w.Number() == 0 {
						if err := w.Drill(ctx, bound, false); err != nil { // no other worker pushes
							return err
						}
						close(ahead)
					}
					select {
					case <-ahead:
					case <-ctx.Done():
						return context.Cause(ctx)
					}
					return w.Drill(ctx, 10, false)
				})
				r.NoError(err)
				if st.Serves() {
					r.LessOrEqual(result.Lead, bound)
					r.Equal(bound, result.Lead)
				}
			})
		})
	}
}

// TestPulledWeightsAreThoseOfOneMoment has workers pull while the server applies gradients of others,
// which change all elements alike.
func TestPulledWeightsAreThoseOfOneMoment(t *testing.T) {
	const params = 60_000
	for _, name := range []string{"fastest", "elastic read", "async read"} {
		testjob.EachSample(t, 4, func(t *testing.T, c testjob.Config) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				o := techniques[name].options(1, []int{params}, params)
				o.Staleness = 5
				st, err := store.New(ctx, r.Job, o, make([]float32, params))
				r.NoError(err)
				_, err = run(ctx, st, func(w *store.Worker) error {
					for range 20 {
						if err := w.Drill(ctx, 1, true); err != nil {
							return err
						}
						first := w.Weights()[0]
						r.Equal(-1, slices.IndexFunc(w.Weights(), func(v float32) bool { return v != first }), "%s: an element differs", name)
					}
					return nil
				})
				r.NoError(err)
				r.NoError(st.Free(ctx))
			})
		})
	}
}

func TestSyncIsTheMeanOfTheWorkers(t *testing.T) {
	testjob.EachSample(t, 4, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			o := store.DrillOptions(servers(r.N), tensors, piece, store.Elastic, store.Technique{})
			o.Mode, o.Rate = store.Sync, -1
			st, err := store.New(ctx, r.Job, o, slices.Repeat([]float32{10}, 1807))
			r.NoError(err)
			_, err = run(ctx, st, func(w *store.Worker) error {
				for i := range w.Grads() {
					w.Grads()[i] = float32(w.Number())
				}
				if err := w.PushPull(ctx); err != nil {
					return err
				}
				for _, v := range w.Weights() {
					r.InDelta(10-float64(st.Workers()-1)/2, v, 1e-4)
				}
				return nil
			})
			r.NoError(err)
		})
	})
}

func TestWrongOptionsAreErrors(t *testing.T) {
	wrong := map[string]func(*store.Options){
		"2 servers of 2":    func(o *store.Options) { o.Servers = 2 },
		"tensors of":        func(o *store.Options) { o.Tensors = []int{5} },
		"ordinary memory":   func(o *store.Options) { o.Copies, o.Loose = 1, true },
		"in the window":     func(o *store.Options) { o.Read, o.Loose = true, true },
		"a ring buffer is":  func(o *store.Options) { o.Ring, o.Buffers = true, 2 },
		"copies: 0 to 2, w": func(o *store.Options) { o.Copies = 3 },
	}
	for text, set := range wrong {
		o := store.DrillOptions(1, tensors, piece, store.Elastic, store.Technique{})
		set(&o)
		err := testjob.RunLocal(t.Context(), 2, func(ctx context.Context, job *runtime.Job) error {
			_, err := store.New(ctx, job, o, make([]float32, 1807))
			return err
		})
		require.ErrorContains(t, err, text)
	}
}

// TestLargeKeysAreNotStaged counts the bytes that gopgas copies for keys of more than
// GRUN_FMA_MAX: none.
func TestLargeKeysAreNotStaged(t *testing.T) {
	const large = 32 << 10 // elements
	for _, name := range []string{"fastest", "read", "apart", "loose"} {
		testjob.EachSample(t, 3, func(t *testing.T, c testjob.Config) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				o := techniques[name].options(1, []int{large, 2 * large}, large)
				st, err := store.New(ctx, r.Job, o, make([]float32, 2*large))
				r.NoError(err)
				staged := func() (n uint64) {
					for _, p := range r.Job.Stats() {
						n += p.Staged
					}
					return n
				}
				before := staged()
				_, err = run(ctx, st, func(w *store.Worker) error { return w.Drill(ctx, 2, true) })
				r.NoError(err)
				r.Equal(before, staged())
				r.Zero(st.Copied())
			})
		})
	}
}
