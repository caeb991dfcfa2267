package fabric

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestWholeWriteReportsWritesThatNeedNoFlag(t *testing.T) {
	says := driver.DeviceInfo{Writes: driver.WriteInfo{Whole: true}, MaxInline: 1 << 10}
	require.True(t, (&binding{info: says}).wholeWrite(driver.WholeWrite))
	require.False(t, (&binding{info: says}).wholeWrite(driver.WholeWrite+8))
	brief, silent, other := says, says, says
	brief.MaxInline, silent.Writes.Silent, other.Writes.Whole = 64, true, false
	require.False(t, (&binding{info: brief}).wholeWrite(72))
	require.False(t, (&binding{info: silent}).wholeWrite(8))
	require.False(t, (&binding{info: other}).wholeWrite(8))
}
