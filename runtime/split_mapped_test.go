package runtime

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestChoiceFitsAWordOrGoesByTheLauncher(t *testing.T) {
	for _, c := range []choice{{color: noColor}, {color: 0, key: math.MinInt32}, {color: math.MaxUint32 - 2, key: math.MaxInt32}, {color: 7, key: -1}} {
		require.Equal(t, c, choiceOf(c.word()))
	}
	for _, c := range []choice{{color: math.MaxUint32 - 1}, {color: math.MaxInt}, {key: math.MaxInt32 + 1}, {key: math.MinInt}, {bad: "no memory"}} {
		require.EqualValues(t, byLauncher, c.word()>>32, "%v", c)
	}
}

// TestOutcomeOfACallIsDecidedOnce by members of which some have passed its barrier and others not.
func TestOutcomeOfACallIsDecidedOnce(t *testing.T) {
	const members = 8
	var word atomic.Uint64
	for seq := uint64(1); seq <= 300; seq++ {
		var got [members]bool
		var all sync.WaitGroup
		for m := range members {
			all.Go(func() { got[m] = decide(&word, seq, uint64(m)%3 == seq%3) })
		}
		all.Wait()
		for m := range members {
			require.Equal(t, got[0], got[m], "call %d, member %d", seq, m)
		}
	}
}

// TestLateMemberKeepsTheOutcomeOfALaterCall that another member gave up. The late one got no outcome of its own
// call yet, or has passed the barrier too.
func TestLateMemberKeepsTheOutcomeOfALaterCall(t *testing.T) {
	for _, passed := range []bool{false, true} {
		var word atomic.Uint64
		require.True(t, decide(&word, 5, true))
		require.False(t, decide(&word, 7, false))
		later := word.Load()
		require.True(t, decide(&word, 5, passed), "a member in a later call got the choices of this one")
		require.Equal(t, later, word.Load())
		require.False(t, decide(&word, 7, true))
	}
}
