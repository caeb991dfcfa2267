package rmalloc

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFlagTakerReturnsSentFlagsLapAfterLap(t *testing.T) {
	const width, size = 3, MaxHeap
	ring := make([]uint64, width)
	sender, taker := NewCursor(width), NewFlagTaker(width, size, true)
	flags := []Flag{{Data, 0, 0}, {Data, MaxGranules - 1, Granule}, {Data, 0, MaxBlock}, {Close, 0, 0}, {Data, 77, 1},
		{Inline, MaxGranules - 1, MostInline}, {Inline, 0, 0}}
	for i := range 1000 {
		_, verdict := taker.Take(ring[taker.Index()])
		require.Equal(t, NotYet, verdict)
		want := flags[i%len(flags)]
		ring[sender.Index()] = want.Encode(sender.Lap())
		sender.Step()
		got, verdict := taker.Take(ring[taker.Index()])
		require.Equal(t, Ready, verdict)
		require.Equal(t, want, got)
		require.EqualValues(t, i+1, taker.Count())
	}
}

func TestFlagEncodesAsDocumented(t *testing.T) {
	require.EqualValues(t, uint64(0xAB_000000_00000000|1<<54|0x123456<<30|0x2345678), Flag{Data, 0x123456, 0x2345678}.Encode(0xAB))
}

func TestFlagTakerReportsFlagsOutsideTheHeapAsCorrupt(t *testing.T) {
	const size = 10 * Granule
	for _, f := range []Flag{
		{Kind: 0}, {Inline, 10, 0}, {Inline, 0, MostInline + 1}, {Data, 10, 0}, {Data, 0, size + 1}, {Data, 9, Granule + 1}, {Data, MaxGranules - 1, MaxBlock},
		{Close, 1, 0}, {Close, 0, 1},
	} {
		taker := NewFlagTaker(4, size, true)
		_, verdict := taker.Take(f.Encode(1))
		require.Equal(t, Corrupt, verdict, "%+v", f)
		require.Zero(t, taker.Index())
	}
	for _, lap := range []uint8{2, 3, 128, 254, 255} {
		taker := NewFlagTaker(4, size, true)
		_, verdict := taker.Take(Flag{Data, 0, 1}.Encode(lap))
		require.Equal(t, Corrupt, verdict, "lap %d", lap)
	}
	bare := NewFlagTaker(4, size, false)
	_, verdict := bare.Take(Flag{Inline, 0, 1}.Encode(1))
	require.Equal(t, Corrupt, verdict, "entries without room for blocks")
}

func FuzzFlag(f *testing.F) {
	f.Add(uint64(0), uint16(1), uint8(1))
	f.Add(Flag{Data, 3, 100}.Encode(1), uint16(5), uint8(0))
	f.Add(Flag{Close, 0, 0}.Encode(7), uint16(1), uint8(6))
	f.Fuzz(func(t *testing.T, word uint64, total uint16, laps uint8) {
		size := (int(total) + 1) * Granule
		taker := NewFlagTaker(1, size, laps%2 == 0)
		for range laps {
			taker.Step()
		}
		before := taker
		flag, verdict := taker.Take(word)
		if verdict != Ready {
			require.Equal(t, before, taker)
			require.Equal(t, Flag{}, flag)
			return
		}
		require.Equal(t, word, flag.Encode(before.Lap()), "each bit has a meaning")
		require.LessOrEqual(t, flag.Offset*Granule+flag.Length, size)
		require.GreaterOrEqual(t, flag.Length, 0)
		require.EqualValues(t, int(laps)+1, taker.Count())
	})
}
