package verbstest

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs"
	"github.com/gopgas/gopgas/verbs/driver"
)

// lastAtomic is the last of the atomic operations.
const lastAtomic = verbs.AtomicMulComplex

// accumulateCases lists the promises about atomics on slices.
func accumulateCases() []testCase {
	return []testCase{
		{"AccumulatesAtEveryWidth", accumulateWidths},
		{"AccumulatesOfComplex128", accumulatePairs},
		{"AccumulatesGoWhereTheirRunsSay", accumulateRuns},
		{"TargetRefusesAllRunsIfItRefusesOne", refusedRuns},
		{"MalformedRunsAreNeverPosted", malformedRuns},
		{"LongestAccumulateArrivesWhole", longestAccumulate},
		{"AccumulatesTakeEffectInOrder", accumulatesInOrder},
		{"InlineOperandsAreTheCallersAtOnce", inlineOperands},
		{"AccumulatesOfManyQueuesAllCount", contendedAccumulate},
		{"TargetRefusesAccumulatesItsRegionDoesNotGrant", refusedAccumulates},
		{"MalformedAccumulatesAreNeverPosted", malformedAccumulates},
	}
}

// accumulateWidths applies each operation at each width, with and without earlier values, and
// compares with model. The element size is also the offset, so that slices begin at odd multiples
// of it. Bytes around the slice must not change.
func accumulateWidths(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needExtended(t, a)
	const elements = 5
	for _, width := range []int{1, 2, 4, 8} {
		mask := ^uint64(0) >> (64 - 8*width)
		for op := verbs.AtomicAdd; op <= lastAtomic; op++ {
			for _, flags := range []verbs.Flags{0, verbs.Fetch} {
				if !op.Fits(width) || op == verbs.AtomicCmpSwap || op == verbs.AtomicLoad && flags == 0 {
					continue
				}
				name := fmt.Sprintf("op %d width %d flags %d", op, width, flags)
				want := fill(make([]byte, 64), int(op))
				fill(b.bytes(64, 64), int(op))
				fill(a.bytes(0, 64), width)
				var old, operands [elements]uint64
				for i := range elements {
					old[i], operands[i] = b.word(64+(i+1)*width, width), a.word(i*width, width)
				}
				a.do(verbs.WorkRequest{Op: verbs.OpAccumulate, Flags: flags, Atomic: op, Width: uint8(width),
					Local: segs(a.at(0, elements*width)), Remote: b.mr.Remote(64 + width)})
				for i := range elements {
					local := operands[i]
					if flags != 0 {
						local = old[i]
					}
					require.Equal(t, local, a.word(i*width, width), "%s element %d", name, i)
				}
				a.flush(b)
				for i := range elements {
					require.Equal(t, model(op, width, old[i], operands[i], 0)&mask, b.word(64+(i+1)*width, width), "%s element %d", name, i)
				}
				copy(want[width:], b.bytes(64+width, elements*width))
				require.Equal(t, want, b.bytes(64, 64), name)
			}
		}
	}
}

// accumulatePairs updates elements of 16 bytes.
func accumulatePairs(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needExtended(t, a)
	if !a.ctx.Info().Atomics.Pairs {
		t.Skip("the device has no atomics of 16 bytes")
	}
	x, y := []complex128{3 - 4i, 0, 1 + 2i}, []complex128{2i, 7, -1 - 1i}
	for op, f := range map[verbs.AtomicOp]func(x, y complex128) complex128{
		verbs.AtomicAddComplex: func(x, y complex128) complex128 { return x + y },
		verbs.AtomicMulComplex: func(x, y complex128) complex128 { return x * y },
		verbs.AtomicSwap:       func(_, y complex128) complex128 { return y },
		verbs.AtomicLoad:       func(x, _ complex128) complex128 { return x },
	} {
		for i := range x {
			putComplex(b.bytes(32+16*i, 16), x[i])
			putComplex(a.bytes(16*i, 16), y[i])
		}
		a.do(verbs.WorkRequest{Op: verbs.OpAccumulate, Flags: verbs.Fetch, Atomic: op, Width: 16, Local: segs(a.at(0, 48)), Remote: b.mr.Remote(32)})
		for i := range x {
			require.Equal(t, x[i], getComplex(a.bytes(16*i, 16)))
		}
		a.flush(b)
		for i := range x {
			require.Equal(t, f(x[i], y[i]), getComplex(b.bytes(32+16*i, 16)), "operation %d", op)
		}
		require.True(t, zero(b.bytes(80, 16)) && zero(b.bytes(16, 16)), "neighbors")
	}
}

func putComplex(b []byte, c complex128) {
	put64(b, math.Float64bits(real(c)))
	put64(b[8:], math.Float64bits(imag(c)))
}

func getComplex(b []byte) complex128 {
	return complex(math.Float64frombits(get64(b)), math.Float64frombits(get64(b[8:])))
}

// longestAccumulate adds a slice of MaxAccumulate bytes, which fills both regions. With Fetch the
// operands become the earlier values.
func longestAccumulate(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needExtended(t, a)
	for _, flags := range []verbs.Flags{0, verbs.Fetch} {
		before, operands := fill(b.mr.Bytes(), 1), fill(a.mr.Bytes(), 2)
		want, sent := append([]byte(nil), before...), append([]byte(nil), operands...)
		for i := 0; i < len(want); i += 8 {
			put64(want[i:], get64(want[i:])+get64(operands[i:]))
		}
		if flags != 0 {
			copy(sent, before)
		}
		a.do(verbs.WorkRequest{Op: verbs.OpAccumulate, Flags: flags, Atomic: verbs.AtomicAdd, Width: 8,
			Local: segs(a.at(0, driver.MaxAccumulate)), Remote: b.mr.Remote(0)})
		require.True(t, string(sent) == string(a.mr.Bytes()), "operands or earlier values")
		a.flush(b) // uses memory of a
		require.True(t, string(want) == string(b.mr.Bytes()), "sums")
	}
}

// accumulatesInOrder overwrites one slice by requests that are under way together. The fetch behind
// them must see the last one whole.
func accumulatesInOrder(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needExtended(t, a)
	const rounds, n = 12, 24 // fewer than the queue holds
	for i := range rounds {
		a.post(verbs.WorkRequest{Op: verbs.OpAccumulate, Flags: verbs.Inline, Atomic: verbs.AtomicSwap, Width: 1,
			Local: segs(verbs.Segment{Mem: fill(make([]byte, n), i)}), Remote: b.mr.Remote(0)})
	}
	a.do(verbs.WorkRequest{Op: verbs.OpAccumulate, Flags: verbs.Fetch, Atomic: verbs.AtomicLoad, Width: 1,
		Local: segs(a.at(0, n)), Remote: b.mr.Remote(0)})
	require.Equal(t, fill(make([]byte, n), rounds-1), a.bytes(0, n))
}

// inlineOperands clears the operands as soon as the post has returned. Each request must add the
// values from before.
func inlineOperands(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needExtended(t, a)
	most := min(driver.MaxAccumulate, a.ctx.Info().MaxInline)
	for _, n := range []int{8, most / 2 &^ 7, most &^ 7} {
		operands := make([]byte, n)
		for range 8 {
			for i := 0; i < n; i += 8 {
				put64(operands[i:], 3)
			}
			a.post(verbs.WorkRequest{Op: verbs.OpAccumulate, Flags: verbs.Inline, Atomic: verbs.AtomicAdd, Width: 8,
				Local: segs(verbs.Segment{Mem: operands}), Remote: b.mr.Remote(0)})
			clear(operands)
		}
		a.flush(b)
		for i := 0; i < n; i += 8 {
			require.Equal(t, uint64(24), get64(b.bytes(i, 8)))
		}
		clear(b.mr.Bytes())
	}
}

// contendedAccumulate has several queues add to the same elements of two bytes. No addition may be
// lost, and no carry may leave its element.
func contendedAccumulate(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needExtended(t, a)
	const rounds, elements = 100, 32
	contend(t, a, b, func(worker int, do func(verbs.WorkRequest) error) error {
		operands := segment(t, a.mr, 1024*worker, 2*elements)
		for i := range rounds {
			for e := range elements {
				operands.Mem[2*e], operands.Mem[2*e+1] = 1, 1
			}
			if err := do(verbs.WorkRequest{Op: verbs.OpAccumulate, Flags: verbs.Fetch * verbs.Flags(i%2), Atomic: verbs.AtomicAdd, Width: 2,
				Local: segs(operands), Remote: b.mr.Remote(512)}); err != nil {
				return err
			}
		}
		return nil
	})
	a.flush(b)
	for e := range elements {
		require.Equal(t, uint64(4*rounds*0x0101&0xffff), b.word(512+2*e, 2))
	}
}

// refusedAccumulates names memory that the target has not granted. The request fails, and the
// target's memory stays as it was.
func refusedAccumulates(t *testing.T, h Harness) {
	for name, spoil := range map[string]func(r *verbs.RemoteAddr){
		"KeyOfNothing":       func(r *verbs.RemoteAddr) { r.RKey = verbs.Key{Hi: 1, Lo: 2} },
		"OneElementTooFar":   func(r *verbs.RemoteAddr) { r.Addr += 64<<10 - 24 },
		"FarBeyondTheEnd":    func(r *verbs.RemoteAddr) { r.Addr += 64 << 20 },
		"AddressOverflows":   func(r *verbs.RemoteAddr) { r.Addr = ^uint64(0) - 7 },
		"OneElementTooEarly": func(r *verbs.RemoteAddr) { r.Addr -= 8 },
	} {
		t.Run(name, func(t *testing.T) {
			for _, flags := range []verbs.Flags{0, verbs.Fetch} {
				a, b := newPair(t, h)
				needExtended(t, a)
				wr := accumulateOf(a, b)
				wr.Flags = flags
				spoil(&wr.Remote)
				a.refusedBy(b, wr)
			}
		})
	}
	t.Run("WithoutTheRight", func(t *testing.T) {
		a, b := newPair(t, h, withAccess(verbs.AllAccess&^verbs.RemoteAtomic))
		needExtended(t, a)
		a.refusedBy(b, accumulateOf(a, b))
	})
}

// accumulateOf returns a valid request for 4 words.
func accumulateOf(a, b *side) verbs.WorkRequest {
	return verbs.WorkRequest{Op: verbs.OpAccumulate, Atomic: verbs.AtomicAdd, Width: 8, Local: segs(a.at(0, 32)), Remote: b.mr.Remote(0)}
}

// malformedAccumulates posts requests that package verbs must refuse by itself: no device sees
// them. A device without extended atomics refuses each with ErrUnsupported.
func malformedAccumulates(t *testing.T, h Harness) {
	a, b := newPair(t, h, withMemory(2*driver.MaxAccumulate))
	want := driver.ErrInvalid
	if !a.ctx.Info().Atomics.Extended {
		want = driver.ErrUnsupported
	}
	for name, spoil := range map[string]func(wr *verbs.WorkRequest){
		"misaligned":            func(wr *verbs.WorkRequest) { wr.Remote = b.mr.Remote(4) },
		"half an element":       func(wr *verbs.WorkRequest) { wr.Local = segs(a.at(0, 12)) },
		"no element":            func(wr *verbs.WorkRequest) { wr.Local = segs(a.at(0, 0)) },
		"no segment":            func(wr *verbs.WorkRequest) { wr.Local = nil },
		"two segments":          func(wr *verbs.WorkRequest) { wr.Local = segs(a.at(0, 8), a.at(8, 8)) },
		"too long":              func(wr *verbs.WorkRequest) { wr.Local = segs(a.at(0, driver.MaxAccumulate+8)) },
		"of no width":           func(wr *verbs.WorkRequest) { wr.Width = 0 },
		"unknown operation":     func(wr *verbs.WorkRequest) { wr.Atomic = lastAtomic + 1 },
		"compare-and-swap":      func(wr *verbs.WorkRequest) { wr.Atomic = verbs.AtomicCmpSwap },
		"load without Fetch":    func(wr *verbs.WorkRequest) { wr.Atomic = verbs.AtomicLoad },
		"inline fetch":          func(wr *verbs.WorkRequest) { wr.Flags = verbs.Inline | verbs.Fetch },
		"floats of two bytes":   func(wr *verbs.WorkRequest) { wr.Atomic, wr.Width = verbs.AtomicAddFloat, 2 },
		"sum of 32 bytes":       func(wr *verbs.WorkRequest) { wr.Width = 32 },
		"complex of four bytes": func(wr *verbs.WorkRequest) { wr.Atomic, wr.Width = verbs.AtomicMulComplex, 4 },
	} {
		t.Run(name, func(t *testing.T) {
			wr := accumulateOf(a, b)
			spoil(&wr)
			a.refusesToPost(b, wr, want)
		})
	}
	t.Run("write that fetches", func(t *testing.T) {
		a.refusesToPost(b, verbs.WorkRequest{Op: verbs.OpWrite, Flags: verbs.Fetch, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(0)}, driver.ErrInvalid)
	})
}
