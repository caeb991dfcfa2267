package faulty

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

func TestPollsDoNotShortenStall(t *testing.T) {
	a, b := pair(t, Plan{Stall: Stall{Every: 3, For: ages}})
	a.set(0, 1)
	a.post(a.write(1, b, 0), a.write(2, b, 0))
	a.expect(1, driver.Success, driver.Success)
	a.post(a.write(3, b, 8))
	a.nothing(1000)
}

func TestStallEndsByTheClockAndWakesTheWaiter(t *testing.T) {
	const long = 20 * time.Millisecond
	a, b := pair(t, Plan{Stall: Stall{Every: 1, For: long}})
	for id := range uint64(3) {
		posted := time.Now()
		a.post(a.write(id, b, 0))
		require.NoError(t, a.cq.Wait(testwatch.Context(t)))
		require.GreaterOrEqual(t, time.Since(posted), long)
		var wc [1]driver.Completion
		n, err := a.cq.Poll(wc[:])
		require.NoError(t, err)
		require.Equal(t, 1, n)
	}
}

func TestRequestHeldByStallStartsWithoutPolls(t *testing.T) {
	a, b := pair(t, Plan{Stall: Stall{Every: 1, For: time.Millisecond}})
	b.offer(5, 0)
	a.post(a.send(1, 0))
	require.Equal(t, uint64(5), b.next().ID)
}

func TestStalledQueuePairCanBeResetAndClosed(t *testing.T) {
	a, b := pair(t, Plan{Stall: Stall{Every: 1, For: ages}})
	a.post(a.write(1, b, 0))
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateErr, driver.Attr{}))
	require.NoError(t, a.qp.Modify(testwatch.Context(t), verbs.StateReset, driver.Attr{}))
	require.NoError(t, a.qp.Close())
	require.Zero(t, b.get(0))
}
