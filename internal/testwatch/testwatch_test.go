package testwatch

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newWatchdog returns a watchdog that looks only when the test calls look.
func newWatchdog(t *testing.T, steps ...func() uint64) *watchdog {
	ctx, cancel := context.WithCancelCause(t.Context())
	return &watchdog{ctx: ctx, cancel: cancel, steps: steps}
}

func TestContextEndsAfterLooksWithoutSteps(t *testing.T) {
	d := newWatchdog(t)
	for range looks - 1 {
		require.True(t, d.look())
		require.NoError(t, d.ctx.Err())
	}
	require.False(t, d.look())
	require.ErrorIs(t, context.Cause(d.ctx), ErrStuck)
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

func TestPatienceIsLongerOnAnEmulatedMachine(t *testing.T) {
	t.Setenv("GOPGAS_PATIENCE", "")
	require.Equal(t, 30*time.Second, Patience())
	t.Setenv("GOPGAS_PATIENCE", "4")
	require.Equal(t, 2*time.Minute, Patience())
}

func TestContextOutlastsThatOfItsTest(t *testing.T) {
	var watched context.Context
	t.Run("inner", func(t *testing.T) {
		watched = Context(t)
		t.Cleanup(func() { require.NoError(t, watched.Err()) })
	})
	require.ErrorIs(t, context.Cause(watched), context.Canceled)
}
