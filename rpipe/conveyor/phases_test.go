package conveyor_test

import (
	"context"
	"errors"
	"math/rand/v2"
	goruntime "runtime"
	"testing"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/internal/pipetest"
	"github.com/gopgas/gopgas/runtime"
)

// A step is a record that names the phase in which its rank pushed it.
type step struct{ Phase, Number uint32 }

// TestRecordsArriveInTheirPhase has ranks push different numbers of records in each phase,
// through pipes with room for few. Each rank's puller checks the phase of each record, and
// counts them.
func TestRecordsArriveInTheirPhase(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			phases := pipetest.Fewer(12)
			v, err := conveyor.Open[step](ctx, r.World, conveyor.WithWindow(over), conveyor.WithBatch(16), conveyor.WithHeap(256), conveyor.WithWidth(3))
			r.NoError(err)
			// pushes calls push for each record that a rank pushes in a phase.
			pushes := func(from, phase int, push func(to int, s step)) {
				rnd := rand.New(rand.NewPCG(uint64(from), uint64(phase)))
				for i := range rnd.IntN(20) * (from + 1) {
					push(rnd.IntN(r.N), step{uint32(phase), uint32(i)})
				}
			}
			pushed := make(chan error, 1)
			go func() {
				var err error
				for phase := range phases {
					pushes(r.Me, phase, func(to int, s step) { err = errors.Join(err, v.Push(ctx, to, s)) })
					err = errors.Join(err, v.EndPhase(ctx))
				}
				pushed <- errors.Join(err, v.Finish(ctx))
			}()
			for phase := range phases {
				want := 0
				for from := range r.N {
					pushes(from, phase, func(to int, _ step) {
						if to == r.Me {
							want++
						}
					})
				}
				for s, err := range v.All(ctx) {
					r.NoError(err)
					r.EqualValues(phase, s.Value.Phase, "from rank %d", s.From)
					want--
				}
				r.Zero(want, "records of phase %d", phase)
			}
			_, _, err = v.Pull(ctx)
			r.ErrorContains(err, "EOF")
			r.NoError(<-pushed)
			r.NoError(v.Close(ctx))
		})
	})
}

// TestOneGoroutineEndsPhases pushes, ends phases and pulls without a wait for room.
func TestOneGoroutineEndsPhases(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		pipetest.OverAll(t, c, func(ctx context.Context, r *testjob.Rank, over *rpipe.WindowPool) {
			v, err := conveyor.Open[step](ctx, r.World, conveyor.WithWindow(over), conveyor.WithBatch(16), conveyor.WithHeap(128), conveyor.WithWidth(2))
			r.NoError(err)
			for phase := range pipetest.Fewer(8) {
				pulled, over := 0, false
				pull := func() {
					s, _, err := v.TryPull()
					switch {
					case err == nil:
						r.EqualValues(phase, s.Phase)
						pulled++
					case errors.Is(err, conveyor.ErrPhaseOver):
						over = true
					default:
						r.ErrorIs(err, rpipe.ErrWouldBlock)
						goruntime.Gosched() // other ranks share the cores
					}
				}
				const each = 10
				for i := range each * r.N {
					for errors.Is(v.TryPush(i%r.N, step{Phase: uint32(phase)}), rpipe.ErrWouldBlock) {
						pull()
					}
				}
				for errors.Is(v.TryEndPhase(), rpipe.ErrWouldBlock) {
					pull()
				}
				for !over {
					pull()
					r.NoError(ctx.Err())
				}
				r.Equal(each*r.N, pulled)
			}
			r.NoError(v.Close(ctx))
		})
	})
}

// TestFinishEndsAllLaterPhases has rank 0 finish two phases before the others.
func TestFinishEndsAllLaterPhases(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			v, err := conveyor.Open[step](ctx, r.World)
			r.NoError(err)
			for phase := range 3 {
				if r.Me > 0 || phase == 0 {
					r.NoError(v.Push(ctx, (r.Me+1)%r.N, step{Phase: uint32(phase)}))
					r.NoError(v.EndPhase(ctx))
				}
				if r.Me == 0 {
					r.NoError(v.Finish(ctx))
				}
				for s, err := range v.All(ctx) {
					r.NoError(err)
					r.EqualValues(phase, s.Value.Phase)
				}
			}
			r.ErrorIs(errors.Join(v.Finish(ctx), v.EndPhase(ctx)), rpipe.ErrClosed)
			_, _, err = v.Pull(ctx)
			r.ErrorContains(err, "EOF")
			r.NoError(v.Close(ctx))
		})
	})
}

// TestDeadRankEndsAllPhases has rank 1 die in the first phase. Rank 0 gets its error once,
// and ends phases alone.
func TestDeadRankEndsAllPhases(t *testing.T) {
	_ = testjob.Config{Provider: "loop", Ranks: 2}.Try(t, func(ctx context.Context, r *testjob.Rank) {
		v, err := conveyor.Open[step](ctx, r.World)
		r.NoError(err)
		if r.Me == 1 {
			r.NoError(v.Push(ctx, 0, step{}))
			r.NoError(v.Flush(ctx))
			r.Die()
		}
		ctx, stop := testwatch.With(context.WithoutCancel(ctx)) // the death ends the job's
		defer stop()
		r.NoError(v.Push(ctx, 0, step{}))
		_ = v.EndPhase(ctx) // rank 1 may be dead
		dead := 0
		for phase := range 3 {
			for _, err := range v.All(ctx) {
				if err != nil {
					r.ErrorIs(err, runtime.ErrRankDead)
					dead++
				}
			}
			r.NoError(v.Push(ctx, 0, step{Phase: uint32(phase)}))
			_ = v.EndPhase(ctx)
		}
		r.Equal(1, dead)
		r.NoError(ctx.Err())
	})
}

// TestPhaseEndsWhereItWasStopped ends the context of EndPhase while a pipe has no room. The
// next call tells the remaining ranks, and tells none twice.
func TestPhaseEndsWhereItWasStopped(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		v, err := conveyor.Open[step](ctx, r.World, conveyor.WithBatch(8), conveyor.WithHeap(128), conveyor.WithWidth(1))
		r.NoError(err)
		if r.Me == 0 {
			r.NoError(v.Push(ctx, 1, step{}))
			r.NoError(v.Flush(ctx)) // waits until rank 1 has opened its end
			for err == nil {
				err = v.TryPush(1, step{})
			}
			r.ErrorIs(err, rpipe.ErrWouldBlock)
			ended, cancel := context.WithCancel(ctx)
			cancel()
			r.ErrorIs(v.EndPhase(ended), context.Canceled)
			r.ErrorIs(v.TryEndPhase(), rpipe.ErrWouldBlock)
		}
		r.NoError(r.World.Barrier(ctx))
		ended := make(chan error, 1)
		go func() { ended <- errors.Join(v.EndPhase(ctx), v.EndPhase(ctx)) }()
		for range 2 {
			for _, err := range v.All(ctx) {
				r.NoError(err)
			}
		}
		r.NoError(<-ended)
		_, _, err = v.TryPull()
		r.ErrorIs(err, rpipe.ErrWouldBlock)
		r.NoError(v.Close(ctx))
	})
}
