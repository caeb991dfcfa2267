package wq

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// TestTransitionsEqualThoseOfIbverbs writes the table of ibv_modify_qp(3) down
// a second time, as a picture: a row for each state, a column for each next one.
func TestTransitionsEqualThoseOfIbverbs(t *testing.T) {
	picture := map[driver.State]string{ //  RESET INIT RTR RTS SQD ERR
		driver.StateReset: "xx...x",
		driver.StateInit:  "xxx..x",
		driver.StateRTR:   "x..x.x",
		driver.StateRTS:   "x..xxx",
		driver.StateSQD:   "x..xxx",
		driver.StateErr:   "x....x",
	}
	for from, row := range picture {
		for to := driver.StateReset; to <= driver.StateErr; to++ {
			err := Transition(from, to)
			if row[to] == 'x' {
				require.NoError(t, err, "%v to %v", from, to)
			} else {
				require.ErrorIs(t, err, driver.ErrState, "%v to %v", from, to)
			}
		}
	}
}

func TestTransitionRefusesUnknownStates(t *testing.T) {
	for unknown := driver.StateErr + 1; unknown != 0; unknown++ {
		require.ErrorIs(t, Transition(driver.StateReset, unknown), driver.ErrState)
		require.ErrorIs(t, Transition(unknown, driver.StateReset), driver.ErrState)
	}
}

func TestStateDecidesWhichPostsAQueuePairTakes(t *testing.T) {
	for state, want := range map[driver.State]struct{ sends, receives bool }{
		driver.StateReset: {false, false},
		driver.StateInit:  {false, true},
		driver.StateRTR:   {false, true},
		driver.StateRTS:   {true, true},
		driver.StateSQD:   {true, true},
		driver.StateErr:   {true, true},
	} {
		require.Equal(t, want.sends, TakesSends(state), state)
		require.Equal(t, want.receives, TakesReceives(state), state)
	}
}
