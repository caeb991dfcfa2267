package runtime_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

var allReduce = team.Call{Name: "AllReduce", Root: team.NoRoot, Count: 4, Of: "float64, Sum"}

// streamOf returns the inner part of the world.
func streamOf(r *testjob.Rank) *team.Team { return team.Of(r.World) }

// A pending is a started call; wait returns its result.
type pending struct{ done chan error }

func (p *pending) wait(ctx context.Context) error {
	select {
	case err := <-p.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// start starts a call of f. If that fails, wait returns the error.
func start(ctx context.Context, f *team.Team, run func(context.Context, team.Key) error) *pending {
	p := &pending{make(chan error, 1)}
	if _, err := f.Calls.Start(ctx, &allReduce, run, func(err error) { p.done <- err }); err != nil {
		p.done <- err
	}
	return p
}

// forever returns the body of a call that waits for a member that never arrives.
func forever(f *team.Team) func(context.Context, team.Key) error {
	return func(ctx context.Context, _ team.Key) error { return f.Await(ctx, func() bool { return false }) }
}

func TestCallsRunInTheOrderOfTheirStart(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		var order []uint64 // calls run one after the other, so it needs no lock
		var first uint64
		for range 20 {
			var calls []*pending
			for range 3 {
				calls = append(calls, start(ctx, streamOf(r), func(_ context.Context, key team.Key) error {
					order = append(order, key.Seq)
					return nil
				}))
			}
			r.NoError(r.World.Barrier(ctx), "it comes behind what was started")
			r.Zero(len(order) % 3)
			key, err := streamOf(r).Calls.Begin(ctx, &allReduce)
			r.NoError(err)
			order = append(order[:0], key.Seq)
			r.NoError(streamOf(r).Calls.End(key, &allReduce, nil))
			for _, c := range calls {
				r.NoError(c.wait(ctx))
			}
			if first != 0 {
				r.Equal(first+5, order[0], "three started, a barrier, and one that began")
			}
			first, order = order[0], nil
		}
	})
}

func TestStartedCallRunsInBackground(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		var ran atomic.Bool
		c := start(ctx, streamOf(r), func(context.Context, team.Key) error { ran.Store(true); return nil })
		r.NoError(c.wait(ctx), "no member made another call")
		r.True(ran.Load())
		r.NoError(r.World.Barrier(ctx))
	})
}

// TestRunHereRunsTheCallWhoseTurnItIs postpones the goroutine of the team, which else may be
// quicker.
func TestRunHereRunsTheCallWhoseTurnItIs(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		runtime.HasOneCore(r.Job)
		for postponed := false; !postponed; {
			r.NoError(ctx.Err())
			ended := make(chan error, 1)
			key, err := streamOf(r).Calls.Start(ctx, &allReduce, func(context.Context, team.Key) error { return nil }, func(err error) { ended <- err })
			r.NoError(err)
			postponed = runtime.Postpone(r.World)
			streamOf(r).Calls.RunHere(key)
			if postponed {
				r.Len(ended, 1)
			}
			r.NoError((&pending{ended}).wait(ctx))
			streamOf(r).Calls.RunHere(key) // it has ended
			r.Empty(ended)
		}
		r.NoError(r.World.Barrier(ctx))
	})
}

// TestRunHereLeavesACallToItsTurn: an earlier call has not ended.
func TestRunHereLeavesACallToItsTurn(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		release := make(chan struct{})
		first := start(ctx, streamOf(r), func(context.Context, team.Key) error { <-release; return nil })
		var ran atomic.Bool
		ended := make(chan error, 1)
		key, err := streamOf(r).Calls.Start(ctx, &allReduce, func(context.Context, team.Key) error { ran.Store(true); return nil },
			func(err error) { ended <- err })
		r.NoError(err)
		streamOf(r).Calls.RunHere(key)
		r.False(ran.Load())
		close(release)
		r.NoError(first.wait(ctx))
		r.NoError((&pending{ended}).wait(ctx))
		r.True(ran.Load())
	})
}

// TestCallsThatWaitHaveThePostponedGoroutineBegin: a rank with one core begins it later. The
// test postpones it by an hour.
func TestCallsThatWaitHaveThePostponedGoroutineBegin(t *testing.T) {
	for name, wait := range map[string]func(ctx context.Context, r *testjob.Rank){
		"Hurry":          func(_ context.Context, r *testjob.Rank) { streamOf(r).Calls.Hurry() },
		"RunHere":        func(_ context.Context, r *testjob.Rank) { streamOf(r).Calls.RunHere(team.Key{}) },
		"a blocking one": func(ctx context.Context, r *testjob.Rank) { r.NoError(r.World.Barrier(ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
				runtime.HasOneCore(r.Job)
				for postponed := false; !postponed; { // the goroutine may have begun
					c := start(ctx, streamOf(r), func(context.Context, team.Key) error { return nil })
					postponed = runtime.Postpone(r.World)
					wait(ctx, r)
					r.NoError(c.wait(ctx))
				}
			})
		})
	}
}

// TestRunHereOfTheLastCallLeavesNoGoroutineToBegin starts the next call, whose goroutine begins.
func TestRunHereOfTheLastCallLeavesNoGoroutineToBegin(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		runtime.HasOneCore(r.Job)
		for postponed := false; !postponed; {
			ended := make(chan error, 1)
			key, err := streamOf(r).Calls.Start(ctx, &allReduce, func(context.Context, team.Key) error { return nil }, func(err error) { ended <- err })
			r.NoError(err)
			postponed = runtime.Postpone(r.World)
			streamOf(r).Calls.RunHere(key)
			r.NoError((&pending{ended}).wait(ctx))
			r.False(runtime.Postpone(r.World))
			r.NoError(start(ctx, streamOf(r), func(context.Context, team.Key) error { return nil }).wait(ctx))
		}
	})
}

func TestBlockingCallWaitsForStartedCall(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		release := make(chan struct{})
		var ended atomic.Bool
		c := start(ctx, streamOf(r), func(context.Context, team.Key) error {
			<-release
			ended.Store(true)
			return nil
		})
		barrier := make(chan error, 1)
		go func() {
			err := r.World.Barrier(ctx)
			if !ended.Load() {
				err = errors.New("passed what was started before")
			}
			barrier <- err
		}()
		close(release)
		r.NoError(<-barrier)
		r.NoError(c.wait(ctx))
	})
}

// TestStartedCallThatMissesARingBeginsAfterAPause ends the call ahead of it without a ring.
func TestStartedCallThatMissesARingBeginsAfterAPause(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		f := streamOf(r)
		key, err := f.Calls.Begin(ctx, &allReduce)
		r.NoError(err)
		before := f.Bell().Parks()
		c := start(ctx, f, func(context.Context, team.Key) error { return nil })
		require.Eventually(t, func() bool { return f.Bell().Parks() > before }, testwatch.Patience(), time.Millisecond)
		runtime.EndUnheard(r.World, key)
		r.NoError(c.wait(ctx))
	})
}

func TestDoneOfStartedCallPrecedesLaterCalls(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		var told atomic.Bool
		_, err := streamOf(r).Calls.Start(ctx, &allReduce, func(context.Context, team.Key) error { return nil }, func(error) {
			time.Sleep(5 * time.Millisecond) // later calls could end first
			told.Store(true)
		})
		r.NoError(err)
		r.NoError(r.World.Barrier(ctx))
		r.True(told.Load())
	})
}

func TestFailedStartedCallBreaksTeamAndLaterCalls(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		half, err := r.World.Split(ctx, 0, 0)
		r.NoError(err)
		f := team.Of(half)
		wrong := errors.New("the input is wrong")
		first := start(ctx, f, func(ctx context.Context, key team.Key) error {
			if r.Me == 0 {
				return wrong
			}
			return forever(f)(ctx, key)
		})
		second := start(ctx, f, func(context.Context, team.Key) error { return nil })
		if err := first.wait(ctx); r.Me == 0 {
			r.ErrorIs(err, wrong)
		} else {
			r.ErrorIs(err, runtime.ErrTeamBroken)
			r.ErrorContains(err, wrong.Error())
		}
		r.ErrorIs(second.wait(ctx), runtime.ErrTeamBroken)
		r.ErrorIs(half.Barrier(ctx), runtime.ErrTeamBroken)
		r.NoError(r.World.Barrier(ctx), "other teams go on")
	})
}

func TestCallCanceledBeforeItsTurnBreaksTeam(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		half, err := r.World.Split(ctx, 0, 0)
		r.NoError(err)
		f := team.Of(half)
		stuck := start(ctx, f, forever(f))
		mine, cancel := context.WithCancel(ctx)
		if r.Me == 0 {
			cancel()
		}
		defer cancel()
		if err := half.Barrier(mine); r.Me == 0 {
			r.ErrorIs(err, context.Canceled)
		} else {
			r.ErrorIs(err, runtime.ErrTeamBroken)
		}
		r.ErrorIs(stuck.wait(ctx), runtime.ErrTeamBroken)
	})
}

func TestEndOfJobEndsStartedCalls(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		ended, begun := make(chan error, 2), make(chan struct{})
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			f := streamOf(r)
			_, err := f.Calls.Start(ctx, &allReduce, forever(f), func(err error) { ended <- err })
			r.NoError(err)
			if r.Me > 0 {
				close(begun)
			} else {
				<-begun
				r.Job.Abort(errors.New("enough"))
			}
			<-r.Job.Context().Done()
		})
		require.ErrorIs(t, err, runtime.ErrAborted)
		for range 2 {
			require.ErrorIs(t, <-ended, runtime.ErrAborted)
		}
	})
}

func TestBarriersAllocateNothing(t *testing.T) {
	if testwatch.Race || mutant.Hesitates {
		t.Skip("the race detector allocates, and so does a rank that waits for long")
	}
	for _, c := range []testjob.Config{{Provider: "loop", Ranks: 2}, {Provider: "auto", Ranks: 3, Hosts: "aab"}} {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			call := func() { r.NoError(r.World.Barrier(ctx)) }
			for range 100 {
				call()
			}
			r.LessOrEqual(r.Allocs(25, call), float64(r.N-1), "parking allocates, and that of other ranks counts, too")
		})
	}
}

// TestRankRemembersItsLatestCalls makes two calls by turns, at first fewer than it remembers.
func TestRankRemembersItsLatestCalls(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 1}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		names := []string{team.Barrier.String(), team.Exchange.String()}
		tm, err := r.World.Split(ctx, r.Me, 0)
		r.NoError(err)
		for made := uint64(1); made <= 2*team.Remembered+5; made++ {
			if made%2 == 0 {
				r.NoError(tm.Barrier(ctx))
			} else {
				_, err := tm.Exchange(ctx, nil)
				r.NoError(err)
			}
			for _, seq := range []uint64{1, made / 2, max(made, team.Remembered) - team.Remembered, made - 1, made} {
				name, ok := runtime.Remembers(tm, seq)
				r.Equal(seq > 0 && made-seq < team.Remembered, ok, "call %d of %d", seq, made)
				if ok {
					r.Equal(names[seq%2], name, "call %d of %d", seq, made)
				}
			}
			_, later := runtime.Remembers(tm, made+1)
			r.False(later)
		}
	})
}
