package silence

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWatchCallsLostAfterTheBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Watch
		var pings atomic.Int32
		lost := make(chan time.Duration, 1)
		start := time.Now()
		w.Start(time.Minute, func() { pings.Add(1) }, func(bound time.Duration) {
			w.Stop()
			lost <- bound
		})
		require.Equal(t, time.Minute, <-lost)
		require.EqualValues(t, Looks, pings.Load())
		require.Equal(t, time.Minute+time.Minute/Looks, time.Since(start), "the start counts as a sign of life")
		time.Sleep(time.Hour)
		require.EqualValues(t, Looks, pings.Load())
	})
}

func TestByteStartsTheCountAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Watch
		w.Start(time.Minute, func() {}, func(time.Duration) { t.Error("lost") })
		r := w.Reader(strings.NewReader(strings.Repeat("x", 100)))
		time.Sleep(time.Second) // no byte arrives at the moment of a look
		for range 100 {
			time.Sleep(50 * time.Second)
			_, err := r.Read(make([]byte, 1))
			require.NoError(t, err)
			require.True(t, w.Heard())
		}
		_, err := r.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		w.Stop()
	})
}

func TestPausedWatchNeitherPingsNorCallsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var w Watch
		var pings atomic.Int32
		lost := make(chan time.Duration, 1)
		w.Start(time.Minute, func() { pings.Add(1) }, func(bound time.Duration) { lost <- bound })
		w.Pause(true)
		time.Sleep(24 * time.Hour)
		require.Zero(t, pings.Load())
		require.Empty(t, lost)
		w.Pause(false)
		require.Equal(t, time.Minute, <-lost)
	})
}

func TestBoundIsLeastOrMore(t *testing.T) {
	for asked, want := range map[time.Duration]time.Duration{0: Least, time.Millisecond: Least, time.Minute: time.Minute} {
		var w Watch
		w.Start(asked, func() {}, func(time.Duration) {})
		require.Equal(t, want, w.Bound())
		w.Stop()
		w.Stop()
	}
}
