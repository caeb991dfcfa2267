//go:build linux

package testjob

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// TestEndOfAWaitIsAStep has rank 1 sleep in a barrier until rank 0 comes.
func TestEndOfAWaitIsAStep(t *testing.T) {
	EachTransport(t, 2, func(t *testing.T, c Config) {
		var s steps
		var asleep, over uint64
		var parks atomic.Pointer[func() uint64]
		require.NoError(t, runtime.RunLocal(testwatch.Context(t), 2, s.counted(func(ctx context.Context, job *runtime.Job) error {
			r := newRank(t, job)
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 1 {
				bell := team.Of(r.World).Bell()
				before := bell.Parks()
				since := func() uint64 { return bell.Parks() - before }
				parks.Store(&since)
			} else {
				r.Eventually(func() bool { f := parks.Load(); return f != nil && (*f)() > 0 },
					testwatch.Patience(), testwatch.Patience()/10000)
				asleep = s.sum()
			}
			r.NoError(r.World.Barrier(ctx))
			if r.Me == 1 {
				over = s.sum()
			}
			return nil
		}), c.Options()...))
		require.Greater(t, over, asleep)
	})
}

// hangs is a body in which rank 1 never comes to the barrier.
func hangs(ctx context.Context, r *Rank) {
	if r.Me == 1 {
		<-ctx.Done()
		r.NoError(context.Cause(ctx)) // the watchdog of either rank may be the first
	}
	r.NoError(r.World.Barrier(ctx))
}

func TestWatchdogEndsAJobWithoutSteps(t *testing.T) {
	t.Setenv("GOPGAS_PATIENCE", "0.01")
	err := RunLocal(t.Context(), 2, func(ctx context.Context, job *runtime.Job) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, testwatch.ErrStuck)
}

func TestProcessesWithoutStepsShowWhereTheyWait(t *testing.T) {
	t.Parallel()
	out := Job{Ranks: 2, Idle: true, Env: []string{"GOPGAS_PATIENCE=0.1"}}.Try(t, "hangs")
	require.NotZero(t, out.ExitCode)
	require.Contains(t, out.Output, "steps_test.go", "the line that waits")
	require.Contains(t, out.Output, testwatch.ErrStuck.Error())
}

// stuck is a body in which rank 1 waits for something that no context ends.
func stuck(ctx context.Context, r *Rank) {
	if r.Me == 1 {
		<-make(chan struct{})
	}
	r.NoError(r.World.Barrier(ctx))
}

// TestProcessThatHeedsNoContextShowsWhereItWaits expects the goroutines of both ranks, and rank 1's twice: as the
// context ends and as the process does.
func TestProcessThatHeedsNoContextShowsWhereItWaits(t *testing.T) {
	t.Parallel()
	out := Job{Ranks: 2, Idle: true, Env: []string{"GOPGAS_PATIENCE=0.03"}}.Try(t, "stuck")
	require.NotZero(t, out.ExitCode)
	require.Contains(t, out.Output, "although its context has ended")
	for _, line := range []string{`\[0\] .*runtime\.\(\*Team\)\.Barrier\(`, `(?s)\[1\] .*testjob\.stuck\(.*\[1\] .*testjob\.stuck\(`} {
		require.Regexp(t, line, out.Output)
	}
}

func TestStepsFileHoldsTheStepsOfAllProcesses(t *testing.T) {
	s := newStepsFile(t, 3)
	require.Zero(t, s.all())
	s.tell(0, 5)
	s.tell(2, 7)
	s.tell(0, 6)
	require.EqualValues(t, 13, s.ofRanks())
	s.tell(3, 1) // a watchdog has ended a context
	require.EqualValues(t, 13, s.ofRanks())
	require.EqualValues(t, 14, s.all())
}
