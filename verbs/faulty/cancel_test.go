package faulty

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestHeldRequestIsCanceledHereAndNeverStarts(t *testing.T) {
	a, b := pair(t, Plan{Seed: 1, DelayStarts: 1, MaxDelay: ages, MaxPolls: 1000})
	a.set(0, 1)
	a.set(8, 2)
	a.post(a.write(1, b, 0), a.write(2, b, 8))
	require.True(t, a.qp.Cancel(1))
	a.expect(1, driver.Canceled, driver.Success)
	require.Zero(t, b.get(0), "a canceled request took effect")
	require.Equal(t, uint64(2), b.get(8), "canceling stopped the queue")
}

func TestStartedRequestIsCanceledBelow(t *testing.T) {
	a, b := pair(t, Plan{DelayCompletions: 1})
	a.post(a.send(1, 0), a.send(2, 0)) // both wait below for a receive
	require.True(t, a.qp.Cancel(2))
	a.expect(2, driver.Canceled) // ahead of its turn: 1 may wait forever
	b.offer(9, 64)
	require.Equal(t, uint64(9), b.next().ID)
	a.expect(1, driver.Success)
	a.post(a.write(3, b, 0))
	a.expect(3, driver.Success)
}

func TestCanceledUnsignaledRequestCompletes(t *testing.T) {
	a, b := pair(t, Plan{DelayStarts: 1, MaxDelay: ages, MaxPolls: 1000})
	wr := a.write(1, b, 0)
	wr.Flags = 0
	a.post(wr)
	a.qp.Cancel(1)
	a.expect(1, driver.Canceled)
}

func TestReceiveIsCanceledBelow(t *testing.T) {
	a, b := pair(t, Plan{DelayCompletions: 1})
	a.offer(1, 0)
	a.offer(2, 64)
	a.qp.Cancel(1)
	a.expect(1, driver.Canceled)
	b.set(0, 7)
	b.post(b.send(3, 0))
	a.expect(2, driver.Success)
	require.Equal(t, uint64(7), a.get(64))
}

func TestCancelIgnoresUnknownAndEndedRequests(t *testing.T) {
	a, b := pair(t, Plan{DelayCompletions: 1})
	a.post(a.write(1, b, 0))
	a.expect(1, driver.Success)
	a.qp.Cancel(1)
	a.qp.Cancel(12345)
	a.nothing(100)
}
