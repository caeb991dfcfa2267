package wait

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// A device that rings only on demand is asked after the waiter has announced
// itself, and looked at once more after that.
func TestOnParkRunsBetweenTheAnnouncementAndTheLastLook(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b := bell()
		var asked, flag atomic.Bool
		b.OnPark(func() {
			require.True(t, b.Waiting())
			asked.Store(true)
		})
		result := waited(testwatch.Context(t), b, flag.Load)
		untilParked(t, b, 0)
		require.True(t, asked.Load())
		asked.Store(false)
		before := b.Parks()
		b.Ring()
		untilParked(t, b, before)
		require.True(t, asked.Load(), "each time")
		flag.Store(true)
		b.Ring()
		require.NoError(t, <-result)
	})
}

func TestWaitSeesAConditionThatOnParkMakesTrue(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b := bell()
		var flag atomic.Bool
		b.OnPark(func() { flag.Store(true) }) // without a ring
		require.NoError(t, b.Wait(testwatch.Context(t), flag.Load))
		require.Zero(t, b.Parks())
	})
}

// The condition rings no bell. The pauses between looks bound the looks of a sleeping waiter.
func TestUnrungWaitLooksAfterEachPause(t *testing.T) {
	onEachBackend(t, func(t *testing.T, bell func() *Bell) {
		b, looks := bell(), 0
		began := time.Now()
		require.NoError(t, b.park(testwatch.Context(t), Manner{Longest: LongestPause}, func() bool {
			looks++
			return looks == 9
		}))
		require.GreaterOrEqual(t, time.Since(began), 7*firstPause+5*LongestPause)
		require.EqualValues(t, 8, b.Parks())
	})
}
