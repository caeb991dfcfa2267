package verbstest

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs"
)

// atomicCases lists the promises about atomics on one word.
func atomicCases() []testCase {
	return []testCase{
		{"FetchAddReturnsOldValue", fetchAdd},
		{"CmpSwapStoresOnlyWhereEqual", cmpSwap},
		{"ExtendedAtomicsAtEveryWidth", extendedAtomics},
		{"NarrowAtomicsLeaveNeighborsAlone", narrowNeighbors},
		{"AtomicWithoutResultSegment", atomicWithoutResult},
		{"FetchAddsOfManyQueuesAllCount", contendedFetchAdd},
		{"CmpSwapsOfManyQueuesAreExclusive", contendedCmpSwap},
		{"NarrowAtomicsOfManyQueuesAllCount", contendedNarrow},
		{"CPUAtomicsMayMixWhereCoherent", mixedWithCPU},
		{"WordInRegionAtOddAddress", oddRegion},
	}
}

func get64(b []byte) uint64    { return binary.NativeEndian.Uint64(b) }
func put64(b []byte, v uint64) { binary.NativeEndian.PutUint64(b, v) }

// fetchAdd lets the sum overflow: addition wraps around.
func fetchAdd(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	put64(b.bytes(16, 8), ^uint64(0)-4)
	want := ^uint64(0) - 4
	for i := range uint64(10) {
		a.do(verbs.WorkRequest{Op: verbs.OpFetchAdd, Operand: i, Local: segs(a.at(8, 8)), Remote: b.mr.Remote(16)})
		require.Equal(t, want, get64(a.bytes(8, 8)))
		want += i
	}
	a.flush(b)
	require.Equal(t, want, word64(b.bytes(16, 8)).Load())
}

// cmpSwap mixes equal and unequal operands. The result is the earlier value in both cases.
func cmpSwap(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	put64(b.bytes(16, 8), 5)
	for _, c := range []struct{ compare, swap, old uint64 }{{4, 9, 5}, {5, 9, 5}, {5, 1, 9}, {9, 0, 9}, {0, 1 << 63, 0}} {
		a.do(verbs.WorkRequest{Op: verbs.OpCmpSwap, Compare: c.compare, Operand: c.swap,
			Local: segs(a.at(8, 8)), Remote: b.mr.Remote(16)})
		require.Equal(t, c.old, get64(a.bytes(8, 8)))
	}
	a.flush(b)
	require.Equal(t, uint64(1<<63), word64(b.bytes(16, 8)).Load())
}

// needExtended skips the case on a device without extended atomics.
func needExtended(t *testing.T, s *side) {
	t.Helper()
	if !s.ctx.Info().Atomics.Extended {
		t.Skip("the device has no extended atomics")
	}
}

// model returns the expected value behind an operation.
func model(op verbs.AtomicOp, width int, old, operand, compare uint64) uint64 {
	switch op {
	case verbs.AtomicAdd:
		return old + operand
	case verbs.AtomicAnd:
		return old & operand
	case verbs.AtomicOr:
		return old | operand
	case verbs.AtomicXor:
		return old ^ operand
	case verbs.AtomicSwap, verbs.AtomicStore:
		return operand
	case verbs.AtomicCmpSwap:
		if old == compare {
			return operand
		}
	case verbs.AtomicMinUint:
		return min(old, operand)
	case verbs.AtomicMaxUint:
		return max(old, operand)
	case verbs.AtomicMinInt, verbs.AtomicMaxInt:
		return modelSigned(op, width, old, operand)
	case verbs.AtomicMul:
		return old * operand
	case verbs.AtomicAddComplex, verbs.AtomicMulComplex:
		return modelComplex(op, old, operand)
	case verbs.AtomicAddFloat, verbs.AtomicMulFloat, verbs.AtomicMinFloat, verbs.AtomicMaxFloat:
		if width == 4 {
			return uint64(math.Float32bits(modelFloat(op, math.Float32frombits(uint32(old)), math.Float32frombits(uint32(operand)))))
		}
		return math.Float64bits(modelFloat(op, math.Float64frombits(old), math.Float64frombits(operand)))
	}
	return old
}

// modelSigned is model for the least and greatest signed number.
func modelSigned(op verbs.AtomicOp, width int, old, operand uint64) uint64 {
	// With its sign flipped, a number is in unsigned order.
	sign := uint64(1) << (8*width - 1)
	if (old^sign < operand^sign) == (op == verbs.AtomicMinInt) {
		return old
	}
	return operand
}

// modelFloat returns what an operation on floats stores. Minimum and maximum keep one of the two
// values, also where they compare as unordered.
func modelFloat[T float32 | float64](op verbs.AtomicOp, old, operand T) T {
	switch {
	case op == verbs.AtomicAddFloat:
		return old + operand
	case op == verbs.AtomicMulFloat:
		return old * operand
	case (old < operand) == (op == verbs.AtomicMinFloat):
		return old
	}
	return operand
}

// modelComplex computes with the words' memory as complex64.
func modelComplex(op verbs.AtomicOp, old, operand uint64) uint64 {
	x, y := complexIn(old), complexIn(operand)
	var z [2]float32
	if op == verbs.AtomicAddComplex {
		z = [2]float32{x[0] + y[0], x[1] + y[1]}
	} else {
		product := complex(x[0], x[1]) * complex(y[0], y[1])
		z = [2]float32{real(product), imag(product)}
	}
	var b [8]byte
	for i, v := range z {
		binary.NativeEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
	return get64(b[:])
}

func complexIn(word uint64) (parts [2]float32) {
	var b [8]byte
	put64(b[:], word)
	for i := range parts {
		parts[i] = math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return parts
}

// extendedAtomics applies each operation at each width to fixed values with high bits set, and
// compares with model. Each runs with a comparand that is equal, and with one that is not.
func extendedAtomics(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needExtended(t, a)
	const old, operand = 0xF1E2D3C4B5A69788, 0x8123456789ABCDEF
	for _, width := range []int{1, 2, 4, 8} {
		mask := ^uint64(0) >> (64 - 8*width)
		for op := verbs.AtomicAdd; op <= lastAtomic; op++ {
			if !op.Fits(width) {
				continue
			}
			for _, compare := range []uint64{old, old + 1} {
				name := fmt.Sprintf("op %d width %d compare %#x", op, width, compare)
				b.setWord(8*width, width, old)
				wr := verbs.WorkRequest{Op: verbs.OpAtomic, Atomic: op, Width: uint8(width), Operand: operand & mask,
					Compare: compare & mask, Remote: b.mr.Remote(8 * width)}
				if op != verbs.AtomicStore {
					wr.Local = segs(a.at(0, width))
				}
				a.do(wr)
				if op != verbs.AtomicStore {
					require.Equal(t, old&mask, a.word(0, width), name)
				}
				a.flush(b)
				require.Equal(t, model(op, width, old&mask, operand&mask, compare&mask)&mask, b.word(8*width, width), name)
			}
		}
	}
}

// setWord and word store and load narrow words in native order.
func (s *side) setWord(offset, width int, v uint64) {
	var buf [8]byte
	put64(buf[:], v)
	if nativeLittle() {
		copy(s.bytes(offset, width), buf[:])
	} else {
		copy(s.bytes(offset, width), buf[8-width:])
	}
}

// word returns the element of width bytes at an offset, as an integer.
func (s *side) word(offset, width int) uint64 {
	var buf [8]byte
	if nativeLittle() {
		copy(buf[:], s.bytes(offset, width))
	} else {
		copy(buf[8-width:], s.bytes(offset, width))
	}
	return get64(buf[:])
}

func nativeLittle() bool { return binary.NativeEndian.Uint16([]byte{1, 0}) == 1 }

// narrowNeighbors adds all ones at each place of a word. A device that emulates narrow atomics by
// wide ones must not change the bytes beside.
func narrowNeighbors(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needExtended(t, a)
	for _, width := range []int{1, 2, 4} {
		for off := 0; off < 8; off += width {
			fill(b.bytes(64, 24), 3)
			want := pattern(24, 3)
			a.do(verbs.WorkRequest{Op: verbs.OpAtomic, Atomic: verbs.AtomicAdd, Width: uint8(width),
				Operand: ^uint64(0) >> (64 - 8*width), Local: segs(a.at(0, width)), Remote: b.mr.Remote(72 + off)})
			a.flush(b)
			copy(want[8+off:8+off+width], b.bytes(72+off, width))
			require.Equal(t, want, b.bytes(64, 24), "width %d at %d", width, off)
			before, after := a.word(0, width), b.word(72+off, width)
			require.Equal(t, (before-1)&(^uint64(0)>>(64-8*width)), after)
		}
	}
}

// atomicWithoutResult posts atomics without a segment for the earlier value.
func atomicWithoutResult(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needExtended(t, a)
	for range 20 {
		a.do(verbs.WorkRequest{Op: verbs.OpAtomic, Atomic: verbs.AtomicAdd, Width: 8, Operand: 3, Remote: b.mr.Remote(0)})
	}
	a.flush(b)
	require.Equal(t, uint64(60), word64(b.bytes(0, 8)).Load())
}

// contend runs body on several connected queue pairs at the same time, with a
// result segment for each.
func contend(t *testing.T, a, b *side, body func(worker int, do func(verbs.WorkRequest) error) error) {
	t.Helper()
	var g errgroup.Group
	for worker := range 4 {
		cq := a.newCQ(64)
		qp, peer := a.newQPOn(cq, cq), b.newQP()
		connect(t, qp, peer)
		g.Go(func() error {
			return body(worker, func(wr verbs.WorkRequest) error { return doOn(qp, cq, wr) })
		})
	}
	require.NoError(t, g.Wait())
}

// contendedFetchAdd has several queues take tickets from one counter. Each ticket goes out once,
// and those of one queue grow.
func contendedFetchAdd(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	rounds := h.rounds(300)
	var seen [4][]uint64
	contend(t, a, b, func(worker int, do func(verbs.WorkRequest) error) error {
		result := segment(t, a.mr, 64*worker, 8)
		for range rounds {
			err := do(verbs.WorkRequest{Op: verbs.OpFetchAdd, Operand: 1, Local: segs(result), Remote: b.mr.Remote(512)})
			if err != nil {
				return err
			}
			seen[worker] = append(seen[worker], get64(result.Mem))
		}
		return nil
	})
	values := map[uint64]bool{}
	for _, list := range seen {
		for i, v := range list {
			require.False(t, values[v], "%d was handed out twice", v)
			require.Less(t, v, uint64(4*rounds))
			require.True(t, i == 0 || v > list[i-1], "%d after %d on one queue", v, list[max(i-1, 0)])
			values[v] = true
		}
	}
	a.flush(b)
	require.Equal(t, uint64(4*rounds), word64(b.bytes(512, 8)).Load())
}

// contendedCmpSwap counts under a lock that each worker takes by
// compare-and-swap.
func contendedCmpSwap(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	const lock, count = 512, 1024
	rounds := h.rounds(40)
	contend(t, a, b, func(worker int, do func(verbs.WorkRequest) error) error {
		result, me := segment(t, a.mr, 64*worker, 8), uint64(worker+1)
		for range rounds {
			for held := false; !held; held = get64(result.Mem) == 0 {
				if err := do(verbs.WorkRequest{Op: verbs.OpCmpSwap, Operand: me, Local: segs(result), Remote: b.mr.Remote(lock)}); err != nil {
					return err
				}
			}
			if err := do(verbs.WorkRequest{Op: verbs.OpRead, Local: segs(result), Remote: b.mr.Remote(count)}); err != nil {
				return err
			}
			put64(result.Mem, get64(result.Mem)+1)
			if err := do(verbs.WorkRequest{Op: verbs.OpWrite, Local: segs(result), Remote: b.mr.Remote(count)}); err != nil {
				return err
			}
			if err := do(verbs.WorkRequest{Op: verbs.OpCmpSwap, Compare: me, Local: segs(result), Remote: b.mr.Remote(lock)}); err != nil {
				return err
			}
			if got := get64(result.Mem); got != me {
				return fmt.Errorf("worker %d held the lock, but found %d in it", me, got)
			}
		}
		return nil
	})
	a.flush(b)
	require.Equal(t, uint64(4*rounds), word64(b.bytes(count, 8)).Load())
}

// contendedNarrow has four queues count in the four halves of one word.
func contendedNarrow(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	needExtended(t, a)
	rounds := h.rounds(300)
	contend(t, a, b, func(worker int, do func(verbs.WorkRequest) error) error {
		for range rounds {
			wr := verbs.WorkRequest{Op: verbs.OpAtomic, Atomic: verbs.AtomicAdd, Operand: 1, Width: 2, Remote: b.mr.Remote(512 + 2*worker)}
			if err := do(wr); err != nil {
				return err
			}
		}
		return nil
	})
	a.flush(b)
	for worker := range 4 {
		require.Equal(t, uint64(rounds), b.word(512+2*worker, 2))
	}
}

// mixedWithCPU has the owner's CPU add to a word while the peer's requests do. A device that is
// coherent loses neither.
func mixedWithCPU(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	if !b.ctx.Info().Atomics.Coherent {
		t.Skip("the device's atomics must not be mixed with the CPU's")
	}
	rounds := h.rounds(1000)
	word := word64(b.bytes(512, 8))
	var g errgroup.Group
	g.Go(func() error {
		for range 100 * rounds {
			word.Add(1)
		}
		return nil
	})
	for range rounds {
		a.do(verbs.WorkRequest{Op: verbs.OpFetchAdd, Operand: 1, Local: segs(a.at(0, 8)), Remote: b.mr.Remote(512)})
	}
	require.NoError(t, g.Wait())
	require.Equal(t, uint64(101*rounds), word.Load())
}

// oddRegion: the word must be aligned; its region need not be.
func oddRegion(t *testing.T, h Harness) {
	a, b := newPair(t, h)
	mem := h.NewMemory(t, 4096)
	mem.Bytes, mem.Offset = mem.Bytes[3:], mem.Offset+3
	mr, err := b.pd.RegMR(testwatch.Context(t), mem, verbs.AllAccess)
	require.NoError(t, err)
	a.do(verbs.WorkRequest{Op: verbs.OpFetchAdd, Operand: 7, Local: segs(a.at(0, 8)), Remote: mr.Remote(5)})
	a.flush(b)
	require.Equal(t, uint64(7), word64(mem.Bytes[5:13]).Load())
}
