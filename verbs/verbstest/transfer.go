package verbstest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs"
)

// transferCases lists the promises about the bytes of WRITE and READ.
func transferCases() []testCase {
	return []testCase{
		{"WritePlacesExactlyItsBytes", writeSizes},
		{"ReadFetchesExactlyItsBytes", readSizes},
		{"LargeWriteAndRead", largeTransfers},
		{"WriteGathersSegments", writeGathers},
		{"ReadScattersToSegments", readScatters},
		{"InlineBufferMayBeReusedAtOnce", inlineReuse},
		{"InlineNeedsNoLocalKey", inlineWithoutKey},
		{"UnregisteredMemoryWhereTheDeviceTakesIt", unregistered},
		{"LastByteOfRegionIsReachable", lastByte},
		{"BothDirectionsAtOnce", bothDirections},
	}
}

var transferSizes = [...]int{0, 1, 2, 3, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 20000}

// writeSizes writes sizes and offsets around the limits of words and pages. Bytes around the target
// must stay zero.
func writeSizes(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for _, n := range transferSizes {
		for _, off := range []int{0, 1, 8, 4093} {
			clear(b.mr.Bytes())
			fill(a.bytes(off+3, n), n)
			a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(off+3, n)), Remote: b.mr.Remote(off)})
			a.flush(b)
			require.Equal(t, pattern(n, n), b.bytes(off, n)[:n:n], "%d bytes at %d", n, off)
			require.True(t, zero(b.bytes(0, off)) && zero(b.bytes(off+n, 8192)), "%d bytes at %d wrote outside", n, off)
		}
	}
}

// readSizes does for READ as writeSizes does for WRITE. The completion has the number of bytes.
func readSizes(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	for _, n := range transferSizes {
		for _, off := range []int{0, 1, 8, 4093} {
			clear(a.mr.Bytes())
			fill(b.bytes(off+5, n), n)
			wc := a.do(verbs.WorkRequest{Op: verbs.OpRead, Local: segs(a.at(off, n)), Remote: b.mr.Remote(off + 5)})
			require.Equal(t, n, wc.Bytes)
			require.Equal(t, pattern(n, n), a.bytes(off, n)[:n:n], "%d bytes at %d", n, off)
			require.True(t, zero(a.bytes(0, off)) && zero(a.bytes(off+n, 8192)), "%d bytes at %d wrote outside", n, off)
		}
	}
}

// largeTransfers moves an odd number of bytes, more than a provider sends at once.
func largeTransfers(t *testing.T, h Harness) {
	const n = 5<<20 + 13
	a, b := newPair(t, h, withMemory(8<<20))
	if uint64(n) > a.ctx.Info().MaxMessage {
		t.Skipf("messages of this device end at %d bytes", a.ctx.Info().MaxMessage)
	}
	fill(a.bytes(1, n), 1)
	a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(1, n)), Remote: b.mr.Remote(3)})
	a.flush(b)
	require.True(t, string(pattern(n, 1)) == string(b.bytes(3, n)), "written data differs")
	clear(a.mr.Bytes())
	a.do(verbs.WorkRequest{Op: verbs.OpRead, Local: segs(a.at(7, n)), Remote: b.mr.Remote(3)})
	require.True(t, string(pattern(n, 1)) == string(a.bytes(7, n)), "read data differs")
}

// writeGathers writes from four segments out of order, one of them empty.
func writeGathers(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	want := append(append(pattern(5, 1), pattern(4000, 2)...), pattern(1, 3)...)
	fill(a.bytes(100, 5), 1)
	fill(a.bytes(5000, 4000), 2)
	fill(a.bytes(50, 1), 3)
	local := segs(a.at(100, 5), a.at(5000, 4000), a.at(0, 0), a.at(50, 1))
	a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: local, Remote: b.mr.Remote(11)})
	a.flush(b)
	require.Equal(t, want, b.bytes(11, len(want)))
	require.Zero(t, b.bytes(11+len(want), 1)[0])
}

// readScatters reads into four segments, one of them empty.
func readScatters(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	want := fill(b.bytes(9, 3005), 4)
	local := segs(a.at(100, 5), a.at(0, 0), a.at(5000, 2000), a.at(200, 1000))
	wc := a.do(verbs.WorkRequest{Op: verbs.OpRead, Local: local, Remote: b.mr.Remote(9)})
	require.Equal(t, 3005, wc.Bytes)
	require.Equal(t, want[:5], a.bytes(100, 5))
	require.Equal(t, want[5:2005], a.bytes(5000, 2000))
	require.Equal(t, want[2005:], a.bytes(200, 1000))
}

// inlineReuse clears the source of an inline WRITE as soon as the post has returned.
func inlineReuse(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	limit := inlineLimit(t, a)
	for i := range 40 {
		n := 1 + i%limit
		fill(a.bytes(0, n), i)
		a.post(verbs.WorkRequest{Op: verbs.OpWrite, Flags: verbs.Inline | verbs.Signaled,
			Local: segs(a.at(0, n)), Remote: b.mr.Remote(i * 512)})
		clear(a.bytes(0, n))
	}
	for range 40 {
		require.Equal(t, verbs.Success, a.sent().Status)
	}
	a.flush(b)
	for i := range 40 {
		n := min(1+i%limit, 512)
		require.Equal(t, pattern(n, i), b.bytes(i*512, n), "write %d", i)
	}
}

func inlineLimit(t *testing.T, s *side) int {
	t.Helper()
	limit := s.ctx.Info().MaxInline
	if limit == 0 {
		t.Skip("the device has no inline data")
	}
	return min(limit, 512)
}

func inlineWithoutKey(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	n := min(inlineLimit(t, a), 16)
	a.do(verbs.WorkRequest{Op: verbs.OpWrite, Flags: verbs.Inline,
		Local: segs(verbs.Segment{Mem: pattern(n, 3)}), Remote: b.mr.Remote(0)})
	a.flush(b)
	require.Equal(t, pattern(n, 3), b.bytes(0, n))
}

// unregistered moves memory without a key at the origin, where the device says that it needs none.
func unregistered(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	if a.ctx.Info().Memory.LocalKeys {
		t.Skip("the device takes registered memory only")
	}
	for _, n := range []int{8, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(verbs.Segment{Mem: pattern(n, 2)}), Remote: b.mr.Remote(0)})
			got := make([]byte, n)
			a.do(verbs.WorkRequest{Op: verbs.OpRead, Local: segs(verbs.Segment{Mem: got}), Remote: b.mr.Remote(0)})
			require.Equal(t, pattern(n, 2), got)
		})
	}
}

// lastByte moves bytes up to the end of the target's region: the bound is exact.
func lastByte(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	end := b.cfg.memory
	for _, n := range []int{1, 8, 4096} {
		fill(a.bytes(0, n), n)
		a.do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(a.at(0, n)), Remote: b.mr.Remote(end - n)})
		a.do(verbs.WorkRequest{Op: verbs.OpRead, Local: segs(a.at(8192, n)), Remote: b.mr.Remote(end - n)})
		require.Equal(t, pattern(n, n), a.bytes(8192, n))
	}
}

// bothDirections has the two sides write to each other at the same time.
func bothDirections(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	fill(a.bytes(0, 9000), 1)
	fill(b.bytes(0, 9000), 2)
	for i := range 8 {
		wr := verbs.WorkRequest{ID: uint64(i), Op: verbs.OpWrite, Flags: verbs.Signaled}
		wr.Local, wr.Remote = segs(a.at(i*1000, 1000)), b.mr.Remote(20000+i*1000)
		a.post(wr)
		wr.Local, wr.Remote = segs(b.at(i*1000, 1000)), a.mr.Remote(20000+i*1000)
		b.post(wr)
	}
	for range 8 {
		require.Equal(t, verbs.Success, a.sent().Status)
		require.Equal(t, verbs.Success, b.sent().Status)
	}
	a.flush(b)
	b.flush(a)
	require.Equal(t, a.bytes(0, 8000), b.bytes(20000, 8000))
	require.Equal(t, b.bytes(0, 8000), a.bytes(20000, 8000))
}

func zero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }
