package verbs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// TestTransitionsAreThoseOfIbverbs writes the table of ibv_modify_qp(3) down
// a second time, as a picture: a row for each state, a column for each next one.
func TestTransitionsAreThoseOfIbverbs(t *testing.T) {
	picture := map[State]string{ //  RESET INIT RTR RTS SQD ERR
		StateReset: "xx...x",
		StateInit:  "xxx..x",
		StateRTR:   "x..x.x",
		StateRTS:   "x..xxx",
		StateSQD:   "x..xxx",
		StateErr:   "x....x",
	}
	for from, row := range picture {
		for to := StateReset; to <= StateErr; to++ {
			err := checkTransition(from, to, Attr{Peer: []byte{1}})
			if row[to] == 'x' {
				require.NoError(t, err, "%v to %v", from, to)
			} else {
				require.ErrorIs(t, err, driver.ErrState, "%v to %v", from, to)
			}
		}
	}
}

func TestTransitionsNeedTheirAttributes(t *testing.T) {
	require.ErrorIs(t, checkTransition(StateInit, StateRTR, Attr{}), driver.ErrInvalid)
	require.ErrorIs(t, checkTransition(StateRTR, StateRTS, Attr{Timeout: -time.Second}), driver.ErrInvalid)
	require.ErrorIs(t, checkTransition(StateReset, StateErr+1, Attr{}), driver.ErrInvalid)
}

func TestPostsAreTakenByState(t *testing.T) {
	for state, want := range map[State]struct{ send, receive bool }{
		StateReset: {false, false},
		StateInit:  {false, true},
		StateRTR:   {false, true},
		StateRTS:   {true, true},
		StateSQD:   {true, true},
		StateErr:   {true, true},
	} {
		require.Equal(t, want.send, maySend(state), state)
		require.Equal(t, want.receive, mayReceive(state), state)
	}
}
