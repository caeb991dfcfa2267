//go:build linux

package fabric_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
)

// TestCallForAnotherRegionExpectsNobody has rank 1 expect a request of rank 0, which makes no call.
func TestCallForAnotherRegionExpectsNobody(t *testing.T) {
	m := newMutualRig(t, never)
	m.region(t, 0, 64, "y")
	m.start(1)
	m.start(1)
	require.Empty(t, m.requests())
	_, err := m.ranks[1].Resolve(watched(t), 0, "y")
	require.NoError(t, err)
	require.Equal(t, "connect 1", m.requests()[0])
	m.useBoth(t)
}

// TestOfferBehindAFailedAttemptLosesNoRank has rank 1 accept an offer, wait in vain, and then fail to connect alone. Rank 0 hears
// of that ahead of the response to its own request, and before rank 1 drops what it made for the offer.
func TestOfferBehindAFailedAttemptLosesNoRank(t *testing.T) {
	t.Parallel() // it sleeps for a second or more
	m := newMutualRig(t, time.Millisecond)
	reached, release := m.hold(t, 0, true)
	m.gate[1] = func(service string, after bool) {
		if service == "disconnect" && after {
			release()
			_, _ = m.ranks[0].Peer(watched(t), 1) // useBoth reports an error
			time.Sleep(20 * time.Millisecond)     // makes it likelier that a wrong end is established
		}
	}
	failsAt(&m.counters[0].onRTR, 1, memory.Descriptors(unix.EMFILE))
	m.start(0)
	<-reached
	_, err := m.ranks[1].Peer(watched(t), 0)
	require.ErrorIs(t, err, driver.ErrExhausted)
	time.Sleep(pastGrace)
	for rank := range 2 {
		require.NoError(t, m.ranks[rank].Gone([]int{1 - rank}))
	}
	m.useBoth(t)
}
