package verbs

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestTransitionsNeedTheirAttributes(t *testing.T) {
	require.NoError(t, checkTransition(StateInit, StateRTR, Attr{Peer: []byte{1}}))
	require.ErrorIs(t, checkTransition(StateInit, StateRTR, Attr{}), driver.ErrInvalid)
	require.ErrorIs(t, checkTransition(StateRTR, StateRTS, Attr{Timeout: -time.Second}), driver.ErrInvalid)
	require.ErrorIs(t, checkTransition(StateReset, StateErr+1, Attr{}), driver.ErrInvalid)
	require.ErrorIs(t, checkTransition(StateReset, StateRTS, Attr{}), driver.ErrState)
}
