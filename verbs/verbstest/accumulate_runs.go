package verbstest

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// needRuns skips the test on devices without accumulates of runs.
func needRuns(t *testing.T, s *side) {
	t.Helper()
	needExtended(t, s)
	needBlocks(t, s)
}

// accumulateRuns compares accumulates of random runs, which may meet the same element again, with a loop
// over their elements.
func accumulateRuns(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needRuns(t, a)
	const half = 4 << 10
	rnd := rand.New(rand.NewPCG(9, 9))
	for round := range 80 {
		width := 1 << rnd.IntN(4)
		runs, places := randomRuns(rnd, half, width)
		flags := verbs.Fetch * verbs.Flags(round%2)
		n := len(places) * width
		fill(a.bytes(0, n), round)
		fill(b.bytes(0, 4*half), round+1)
		want, earlier := append([]byte(nil), b.bytes(0, 4*half)...), append([]byte(nil), a.bytes(0, n)...)
		for i, at := range places {
			element, operand := want[2*half+at:][:width], a.bytes(i*width, width)
			if flags != 0 {
				copy(earlier[i*width:], element)
			}
			addTo(element, operand)
		}
		a.do(verbs.WorkRequest{Op: verbs.OpAccumulate, Flags: flags, Atomic: verbs.AtomicAdd, Width: uint8(width), Runs: runs,
			Local: segs(a.at(0, n)), Remote: b.mr.Remote(2 * half)})
		a.flush(b)
		require.Equal(t, want, b.bytes(0, 4*half), "width %d, runs %v", width, runs)
		require.Equal(t, earlier, a.bytes(0, n), "width %d, runs %v", width, runs)
	}
}

// randomRuns returns runs of elements of width bytes within half bytes ahead of and behind an address. places
// has the offset of each element from there, in the order of the request.
func randomRuns(rnd *rand.Rand, half, width int) (runs []verbs.Run, places []int) {
	for range 1 + rnd.IntN(12) {
		r := verbs.Run{At: width * (rnd.IntN(half/width) - half/2/width), Block: width * (1 + rnd.IntN(5)), Count: 1 + rnd.IntN(6), Stride: width * (rnd.IntN(32) - 16)}
		runs = append(runs, r)
		for i := range r.Count {
			for k := 0; k < r.Block; k += width {
				places = append(places, r.At+i*r.Stride+k)
			}
		}
	}
	return runs, places
}

// addTo adds a little-endian number to another one of the same width.
func addTo(element, operand []byte) {
	carry := 0
	for k := range element {
		carry += int(element[k]) + int(operand[k])
		element[k] = byte(carry)
		carry >>= 8
	}
}

// accumulateOfRuns returns a valid request for 4 words.
func accumulateOfRuns(a, b *side) verbs.WorkRequest {
	wr := accumulateOf(a, b)
	wr.Remote, wr.Runs = b.mr.Remote(1024), []verbs.Run{{Block: 8, Count: 3, Stride: 16}, {At: -8, Block: 8, Count: 1}}
	return wr
}

// refusedRuns spoils one run of two: the target refuses the request and changes no element of either run.
func refusedRuns(t *testing.T, h Harness) {
	for name, spoil := range map[string]func(wr *verbs.WorkRequest){
		"KeyOfNothing":       func(wr *verbs.WorkRequest) { wr.Remote.RKey = verbs.Key{Hi: 1, Lo: 2} },
		"BeforeTheRegion":    func(wr *verbs.WorkRequest) { wr.Runs[1].At = -1032 },
		"BehindTheRegion":    func(wr *verbs.WorkRequest) { wr.Runs[1].At = 64<<10 - 1024 },
		"StrideOverTheEnd":   func(wr *verbs.WorkRequest) { wr.Runs[0].Stride = 32 << 10 },
		"StrideOverTheBegin": func(wr *verbs.WorkRequest) { wr.Runs[0].Stride = -520 },
		"FarAway":            func(wr *verbs.WorkRequest) { wr.Runs[0].At = 1 << 57 },
	} {
		for _, flags := range []verbs.Flags{0, verbs.Fetch} {
			t.Run(name, func(t *testing.T) {
				a, b := newPair(t, h)
				needRuns(t, a)
				wr := accumulateOfRuns(a, b)
				wr.Flags = flags
				spoil(&wr)
				a.refusedBy(b, wr)
			})
		}
	}
	t.Run("WithoutTheRight", func(t *testing.T) {
		a, b := newPair(t, h, withAccess(verbs.AllAccess&^verbs.RemoteAtomic))
		needRuns(t, a)
		a.refusedBy(b, accumulateOfRuns(a, b))
	})
}

// malformedRuns posts requests that this end refuses itself: the queue pair takes none and still works.
func malformedRuns(t *testing.T, h Harness) {
	a, b := newPair(t, h, withMemory(2*driver.MaxBlocks))
	want := driver.ErrInvalid
	if info := a.ctx.Info(); !info.Atomics.Extended || !info.Blocks {
		want = driver.ErrUnsupported
	}
	for name, spoil := range map[string]func(wr *verbs.WorkRequest){
		"too few bytes":     func(wr *verbs.WorkRequest) { wr.Runs = wr.Runs[:1] },
		"misaligned":        func(wr *verbs.WorkRequest) { wr.Runs[1].At = 4 },
		"misaligned stride": func(wr *verbs.WorkRequest) { wr.Runs[0].Stride = 12 },
		"half an element":   func(wr *verbs.WorkRequest) { wr.Runs = []verbs.Run{{Block: 4, Count: 8, Stride: 8}} },
		"no block":          func(wr *verbs.WorkRequest) { wr.Runs = append(wr.Runs, verbs.Run{Block: 8}) },
		"too large": func(wr *verbs.WorkRequest) {
			wr.Runs, wr.Local = []verbs.Run{{Block: 8, Count: driver.MaxBlocks / 8, Stride: 8}}, segs(a.at(0, driver.MaxBlocks))
		},
	} {
		t.Run(name, func(t *testing.T) {
			wr := accumulateOfRuns(a, b)
			spoil(&wr)
			a.refusesToPost(b, wr, want)
		})
	}
}
