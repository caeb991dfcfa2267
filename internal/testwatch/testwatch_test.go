package testwatch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { Main(m) }

// newWatchdog returns a watchdog that looks only when the test calls look. A look waits for its count.
func newWatchdog(t *testing.T, steps ...func() uint64) *watchdog {
	t.Setenv("GOPGAS_PATIENCE", "1000")
	ctx, cancel := context.WithCancelCause(t.Context())
	return &watchdog{ctx: ctx, cancel: cancel, steps: steps, pressure: func() float64 { return 1 }, show: func() {}}
}

func TestContextEndsAfterLooksWithoutSteps(t *testing.T) {
	d, shown := newWatchdog(t), 0
	d.show = func() {
		shown++
		require.NoError(t, d.ctx.Err(), "the goroutines still wait")
	}
	for range looks - 1 {
		require.True(t, d.look())
		require.NoError(t, d.ctx.Err())
	}
	require.False(t, d.look())
	require.ErrorIs(t, context.Cause(d.ctx), ErrStuck)
	require.Equal(t, 1, shown)
}

// TestFunctionThatOutlivesItsContextEndsTheProcess has steps move on: a function that goes on may make some.
func TestFunctionThatOutlivesItsContextEndsTheProcess(t *testing.T) {
	for _, canceled := range []bool{false, true} {
		var moves, exits int
		d := newWatchdog(t, func() uint64 { return uint64(moves) })
		d.waits, d.exit = true, func() { exits++ }
		if canceled {
			d.cancel(nil)
		}
		for range looks {
			require.True(t, d.look())
		}
		require.Error(t, d.ctx.Err())
		for range looks - 1 {
			moves++
			require.True(t, d.look())
			require.Zero(t, exits)
		}
		require.False(t, d.look())
		require.Equal(t, 1, exits)
	}
}

// TestStepsThatAreNotCountedStandStill has a count wait for a mutex, as for one of a stuck goroutine.
func TestStepsThatAreNotCountedStandStill(t *testing.T) {
	t.Setenv("GOPGAS_PATIENCE", "0.001")
	var held sync.Mutex
	held.Lock()
	defer held.Unlock()
	ctx, stop := With(t.Context(), func() uint64 {
		held.Lock()
		defer held.Unlock()
		return 0
	})
	defer stop()
	<-ctx.Done()
	require.ErrorIs(t, context.Cause(ctx), ErrStuck)
}

func TestRunReturnsTheErrorOfItsFunction(t *testing.T) {
	bad := errors.New("bad")
	var watched context.Context
	err := Run(t.Context(), func(ctx context.Context) error {
		watched = ctx
		require.NoError(t, ctx.Err())
		return bad
	})
	require.Equal(t, bad, err)
	require.ErrorIs(t, context.Cause(watched), context.Canceled)
}

func TestStepOfOneSourceRestartsPatience(t *testing.T) {
	var mine, theirs uint64
	d := newWatchdog(t, func() uint64 { return mine }, func() uint64 { return theirs })
	for i := range uint64(5) {
		for range looks - 1 {
			require.True(t, d.look())
		}
		*[]*uint64{&mine, &theirs}[i%2]++
		require.True(t, d.look())
	}
	for range looks - 1 {
		require.True(t, d.look())
	}
	require.False(t, d.look())
}

func TestStoppedWatchdogDoesNotLook(t *testing.T) {
	looked := 0
	ctx, stop := With(t.Context(), func() uint64 { looked++; return 0 })
	stop()
	require.ErrorIs(t, context.Cause(ctx), context.Canceled)
	require.Zero(t, looked)
}

func TestLooksOnABusyMachineCountLess(t *testing.T) {
	d := newWatchdog(t)
	d.pressure = func() float64 { return 4 }
	for range 4*looks - 1 {
		require.True(t, d.look())
	}
	require.False(t, d.look())
}

func TestPressureIsThreadsForEachCore(t *testing.T) {
	for line, want := range map[string]float64{
		"0.50 3.10 2.00 1/311 1733\n": 1,
		"4.20 3.10 2.00 7/311 1733\n": 3.5,
		"9.00 3.10 2.00 1/311 1733\n": 4.5,
		"500 3.10 2.00 1/311 1733\n":  mostPressure,
		"":                            1,
		"a b c d e":                   1,
	} {
		require.InDelta(t, want, pressureOf(line, 2), 0, line)
	}
	require.GreaterOrEqual(t, pressure(), 1.)
}

func TestPatienceIsLongerOnAnEmulatedMachine(t *testing.T) {
	t.Setenv("GOPGAS_PATIENCE", "")
	require.GreaterOrEqual(t, Patience(), 30*time.Second)
	t.Setenv("GOPGAS_PATIENCE", "40")
	require.GreaterOrEqual(t, Patience(), 20*time.Minute)
}

func TestContextOutlastsThatOfItsTest(t *testing.T) {
	var watched context.Context
	t.Run("inner", func(t *testing.T) {
		watched = Context(t)
		t.Cleanup(func() { require.NoError(t, watched.Err()) })
	})
	require.ErrorIs(t, context.Cause(watched), context.Canceled)
}
