//go:build linux

package shm_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/shm"
)

// givesUp has the end of an object fail, since a peer is stopped within a request. It ends the test if
// the end still waits when the watchdog ends ctx.
func givesUp(ctx context.Context, t *testing.T, end func() error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	select {
	case err := <-ended:
		require.ErrorContains(t, err, "stopped")
	case <-ctx.Done():
		require.NoError(t, context.Cause(ctx))
	}
}

// TestOneEndAloneWaitsForAPeerStoppedWithinARequest has later ends wait for an hour, if they begin to wait anew.
func TestOneEndAloneWaitsForAPeerStoppedWithinARequest(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]func(*side) error{
		"QP": func(a *side) error { return a.qp.Close() },
		"MR": func(a *side) error { return a.mr.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := testwatch.Context(t)
			a, b := newPair(t, sideConfig{})
			var more [4]driver.MR
			for i := range more {
				var err error
				more[i], err = a.device.RegMR(ctx, a.arena.Memory(0, 8), driver.AllAccess)
				require.NoError(t, err)
			}
			b.do(write(a.at(0), word(1)))
			shm.SetBusy(b.qp, 1)
			defer shm.SetBusy(b.qp, 2) // ahead of the end of the device
			shm.SetPatience(a.device, time.Millisecond)
			givesUp(ctx, t, func() error { return first(a) })
			shm.SetPatience(a.device, time.Hour)
			for _, mr := range more[:3] {
				givesUp(ctx, t, mr.Close)
			}
			shm.SetBusy(b.qp, 2)
			require.NoError(t, more[3].Close())
		})
	}
}

// TestPatienceWithSeveralStoppedPeersRunsAtTheSameTime has MR.Close wait for an hour, if it begins its wait for
// the second peer behind that for the first one.
func TestPatienceWithSeveralStoppedPeersRunsAtTheSameTime(t *testing.T) {
	t.Parallel()
	ctx := testwatch.Context(t)
	a, b := newPair(t, sideConfig{shared: true})
	a.bell.OnPark(func() { shm.SetPatience(a.device, time.Hour) })
	for _, peer := range []*side{b, a.qpTo(newSide(t, sideConfig{}))} {
		peer.do(write(a.at(128), word(1)))
		shm.SetBusy(peer.qp, 1)
		defer shm.SetBusy(peer.qp, 2)
	}
	shm.SetPatience(a.device, 100*time.Millisecond) // longer than the waiter looks before it sleeps
	givesUp(ctx, t, a.mr.Close)
}
