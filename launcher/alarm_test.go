//go:build linux

package launcher

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAlarmDoesNotCountTheTimeOfAStop(t *testing.T) {
	a := newAlarm()
	defer a.off()
	a.putOff(time.Hour)
	require.True(t, a.at.IsZero(), "it is not set")
	a.set(time.Hour)
	at := a.at
	a.putOff(time.Hour)
	require.WithinDuration(t, at.Add(time.Hour), a.at, time.Minute)
}

func TestAlarmThatRangDuringAStopIsPutOff(t *testing.T) {
	a := newAlarm()
	defer a.off()
	a.set(0)
	a.putOff(time.Hour)
	require.True(t, a.Stop(), "it has not rung")
}
