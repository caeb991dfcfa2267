//go:build linux

package testjob

import (
	"context"
	"os"
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

// impatience gives the watchdog of this process a time of 30 looks, of 3 ms each on an idle machine.
const impatience = "0.003"

// hangs is a body in which rank 1 never comes to the second barrier. Rank 0's watchdog stays patient.
func hangs(ctx context.Context, r *Rank) {
	r.NoError(r.World.Barrier(ctx))
	if r.Me == 1 {
		r.NoError(os.Setenv("GOPGAS_PATIENCE", impatience))
		<-ctx.Done()
		r.NoError(context.Cause(ctx))
	}
	r.NoError(r.World.Barrier(ctx))
}

// TestWatchdogEndsAJobWithoutSteps is patient until both ranks are there, and while they end.
func TestWatchdogEndsAJobWithoutSteps(t *testing.T) {
	normal := os.Getenv("GOPGAS_PATIENCE")
	patience := func(job *runtime.Job, times string) {
		if job.World().Rank() == 0 {
			t.Setenv("GOPGAS_PATIENCE", times)
		}
	}
	err := RunLocal(t.Context(), 2, func(ctx context.Context, job *runtime.Job) error {
		if err := job.World().Barrier(ctx); err != nil {
			return err
		}
		patience(job, impatience)
		<-ctx.Done()
		patience(job, normal)
		return context.Cause(ctx)
	})
	require.ErrorIs(t, err, testwatch.ErrStuck)
}

func TestProcessesWithoutStepsShowWhereTheyWait(t *testing.T) {
	t.Parallel()
	out := Job{Ranks: 2, Idle: true}.Try(t, "hangs")
	require.NotZero(t, out.ExitCode)
	require.Regexp(t, `\[1\] .*steps_test\.go`, out.Output, "the line that waits")
	require.Contains(t, out.Output, testwatch.ErrStuck.Error())
}

// stuck is a body in which rank 1 waits for something that no context ends.
func stuck(ctx context.Context, r *Rank) {
	r.NoError(r.World.Barrier(ctx))
	if r.Me == 1 {
		r.NoError(os.Setenv("GOPGAS_PATIENCE", impatience))
		<-make(chan struct{})
	}
	r.NoError(r.World.Barrier(ctx))
}

// TestProcessThatHeedsNoContextShowsWhereItWaits expects the goroutines of rank 1 twice: as the context ends and as
// the process does.
func TestProcessThatHeedsNoContextShowsWhereItWaits(t *testing.T) {
	t.Parallel()
	out := Job{Ranks: 2, Idle: true}.Try(t, "stuck")
	require.NotZero(t, out.ExitCode)
	require.Contains(t, out.Output, "although its context has ended")
	require.Regexp(t, `(?s)\[1\] .*testjob\.stuck\(.*\[1\] .*testjob\.stuck\(`, out.Output)
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
