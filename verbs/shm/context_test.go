//go:build linux

package shm

import (
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func TestBlocksWithUnreadMessagesAreUsedAgainLast(t *testing.T) {
	l := blockList{limit: 3, epochs: make(map[uint32]uint64)}
	take := func() uint32 {
		index, epoch, err := l.take()
		require.NoError(t, err)
		require.Equal(t, l.epochs[index]+1, epoch, "no epoch comes twice")
		return index
	}
	first, second := take(), take()
	l.giveBack(first, 1, false)
	require.EqualValues(t, 2, take(), "one that was never used")
	l.giveBack(second, 5, true)
	require.Equal(t, second, take(), "one that was read to its end")
	require.Equal(t, first, take(), "there is no other")
	_, _, err := l.take()
	require.ErrorIs(t, err, driver.ErrUnsupported)
}

func TestDoorbellsReachEveryQPOnce(t *testing.T) {
	var d doorbells
	for range 2 {
		for _, i := range []uint32{0, 1, 63, 64, 4095, 64} {
			d.ring(i)
		}
		var seen []uint32
		d.take(func(i uint32) { seen = append(seen, i) })
		require.Equal(t, []uint32{0, 1, 63, 64, 4095}, seen)
		d.take(func(i uint32) { require.Fail(t, "rung twice", "%d", i) })
	}
}

func TestDoorbellsRungDuringTakeAreNotLost(t *testing.T) {
	var d doorbells
	const rounds = 20_000
	var told, seen [4]uint64
	done := make(chan struct{})
	var stored [4]atomic.Uint64
	go func() {
		defer close(done)
		for i := range uint64(rounds) {
			stored[i%4].Store(i + 1)
			d.ring(uint32(i%4) * 64)
		}
	}()
	look := func(i uint32) { seen[i/64] = stored[i/64].Load() }
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		d.take(look)
	}
	for i := range told {
		told[i] = stored[i].Load()
	}
	require.Equal(t, told, seen, "the last value of each is seen")
}
