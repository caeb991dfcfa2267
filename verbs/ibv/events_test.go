//go:build ibverbs

package ibv

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
)

// notice posts a WRITE_WITH_IMM and waits for its completion.
func (e *end) notice(to *end, flags driver.Flags) {
	e.t.Helper()
	to.receive(7)
	e.post(driver.WorkRequest{ID: 1, Op: driver.OpWriteImm, Flags: flags | driver.Signaled, Remote: to.at(0)})
	require.Equal(e.t, driver.Success, e.next().Status)
}

func TestArmedQueueReportsNextCompletionOnce(t *testing.T) {
	a, b := newEnds(t, impatient)
	a.notice(b, 0)
	require.Empty(t, b.events, "the event was not asked for")
	require.NoError(t, b.cq.Arm(false))
	a.notice(b, 0)
	b.event(driver.EventCompletion)
	a.notice(b, 0)
	for range 3 {
		require.Equal(t, driver.OpRecvImm, b.next().Op)
	}
	require.Empty(t, b.events, "it was asked for once")
}

func TestQueueArmedForSolicitedIgnoresOtherCompletions(t *testing.T) {
	a, b := newEnds(t, impatient)
	require.NoError(t, b.cq.Arm(true))
	a.notice(b, 0)
	a.notice(b, 0)
	require.Equal(t, armedSolicited, b.cq.armed.Load())
	a.notice(b, driver.Solicited)
	b.event(driver.EventCompletion)
	require.Equal(t, armedNot, b.cq.armed.Load())
}

func TestArmingForAllIncludesSolicited(t *testing.T) {
	a, b := newEnds(t, impatient)
	require.NoError(t, b.cq.Arm(true))
	require.NoError(t, b.cq.Arm(false))
	require.NoError(t, b.cq.Arm(true))
	a.notice(b, 0)
	b.event(driver.EventCompletion)
}

// An idle device raises no events, and its watchdog sleeps.
func TestIdleDeviceRaisesNoEvents(t *testing.T) {
	a, b := newEnds(t, impatient)
	a.post(driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(0)})
	require.True(t, a.dev.watchdog.running.Load())
	require.Equal(t, uint64(1), a.next().ID)
	require.Eventually(t, func() bool { return !a.dev.watchdog.running.Load() }, testwatch.Patience(), time.Millisecond)
	require.False(t, b.dev.watchdog.running.Load(), "a target has nothing to watch over")
	for len(a.events) > 0 {
		require.Equal(t, driver.EventCompletion, (<-a.events).Kind)
	}
}

func TestCompletionsOfClosedQueuePairAreDropped(t *testing.T) {
	a, b := newEnds(t, impatient)
	for id := range uint64(4) {
		a.post(driver.WorkRequest{ID: id, Op: driver.OpWrite, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(0)})
	}
	require.Equal(t, uint64(0), a.next().ID)
	require.NoError(t, a.qp.Close())
	require.NoError(t, a.qp.Close(), "closing is idempotent")
	a.none()
}

// The watchdog must not treat a program that does not poll as a broken device.
func TestWatchdogKeepsUnpolledCompletions(t *testing.T) {
	a, b := newEnds(t, impatient)
	for id := range uint64(16) {
		a.post(driver.WorkRequest{ID: id, Op: driver.OpWrite, Flags: driver.Signaled, Local: a.segment(8), Remote: b.at(0)})
	}
	require.Eventually(t, func() bool { return !a.dev.watchdog.running.Load() }, testwatch.Patience(), time.Millisecond)
	for id := range uint64(16) {
		wc := a.next()
		require.Equal(t, id, wc.ID)
		require.Equal(t, driver.Success, wc.Status)
	}
	a.none()
}

func TestHarvestKeepsNoMoreThanTheQueuesDepth(t *testing.T) {
	a, _ := newEnds(t, impatient)
	c := a.cq
	c.mu.Lock()
	defer c.mu.Unlock()
	require.True(t, c.harvest(), "the device has none")
	n := 0
	for ; c.found.Room() > 0; n++ {
		*c.found.Push() = driver.Completion{ID: uint64(n)}
	}
	require.Equal(t, 256, n)
	require.False(t, c.harvest(), "there is no room to ask for more")
	var wc [256]driver.Completion
	require.Equal(t, 256, c.fill(wc[:]))
	for i := range wc {
		require.Equal(t, uint64(i), wc[i].ID)
	}
}
