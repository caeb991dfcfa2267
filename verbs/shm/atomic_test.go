//go:build linux

package shm_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// model returns the word that an atomic operation leaves behind.
func model(op driver.AtomicOp, old, operand, compare uint64) uint64 {
	switch op {
	case driver.AtomicAdd:
		return old + operand
	case driver.AtomicAnd:
		return old & operand
	case driver.AtomicOr:
		return old | operand
	case driver.AtomicXor:
		return old ^ operand
	case driver.AtomicCmpSwap:
		if old != compare {
			return old
		}
	case driver.AtomicLoad:
		return old
	}
	return operand
}

func truncate(v uint64, width int) uint64 { return v << (64 - 8*width) >> (64 - 8*width) }

func get(b []byte, width int) uint64 {
	var wide [8]byte
	copy(wide[:], b[:width])
	return binary.LittleEndian.Uint64(wide[:])
}

func TestAtomicsOfEveryWidthMatchModelAndChangeNoOtherByte(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	rng := rand.New(rand.NewPCG(1, 1))
	mem := b.arena.Bytes()[:64]
	for _, width := range []int{1, 2, 4, 8} {
		for op := driver.AtomicAdd; op <= driver.AtomicStore; op++ {
			t.Run(fmt.Sprint(op, "x", width), func(t *testing.T) {
				for range 100 {
					for i := range mem {
						mem[i] = byte(rng.Uint32())
					}
					before := append([]byte(nil), mem...)
					at := rng.IntN(64/width) * width
					old, operand := get(mem[at:], width), rng.Uint64()
					compare := old | rng.Uint64()<<(8*width-1) // equal half of the time, in the bits that count
					result := make([]byte, width)
					wr := driver.WorkRequest{Op: driver.OpAtomic, Atomic: op, Width: uint8(width), Operand: operand, Compare: compare,
						Remote: b.at(uint64(at))}
					if op != driver.AtomicStore {
						wr.Local = segments(result)
					}
					a.do(wr)
					if op != driver.AtomicStore {
						require.Equal(t, old, get(result, width))
					}
					want := truncate(model(op, old, truncate(operand, width), truncate(compare, width)), width)
					require.Equal(t, want, get(mem[at:], width))
					copy(mem[at:at+width], before[at:])
					require.Equal(t, before, mem)
				}
			})
		}
	}
}

func TestAtomicsOfAdjacentBytesAreIndependent(t *testing.T) {
	a, b := newPair(t, sideConfig{})
	const rounds = 5000
	var wg sync.WaitGroup
	wg.Go(func() {
		for range rounds {
			b.do(driver.WorkRequest{Op: driver.OpAtomic, Atomic: driver.AtomicAdd, Width: 2, Operand: 1, Remote: a.at(2)})
		}
	})
	self := newSide(t, sideConfig{})
	peer := a.qpTo(self)
	wg.Go(func() {
		for range rounds {
			peer.do(driver.WorkRequest{Op: driver.OpAtomic, Atomic: driver.AtomicAdd, Width: 2, Operand: 1, Remote: a.at(0)})
		}
	})
	wg.Wait()
	require.EqualValues(t, rounds, binary.LittleEndian.Uint16(a.arena.Bytes()[0:]))
	require.EqualValues(t, rounds, binary.LittleEndian.Uint16(a.arena.Bytes()[2:]))
}

// qpTo connects another QP of s with from, and returns from.
func (s *side) qpTo(from *side) *side {
	s.t.Helper()
	second := *s
	var err error
	second.qp, err = s.device.CreateQP(s.t.Context(), driver.QPConfig{SendCQ: s.cq, RecvCQ: s.cq, SendDepth: 4, RecvDepth: 4})
	require.NoError(s.t, err)
	second.connect(from.qp.Address())
	from.connect(second.qp.Address())
	return from
}

func TestMisalignedAtomicIsRefused(t *testing.T) {
	for width, offset := range map[uint8]uint64{2: 1, 4: 2, 8: 4} {
		a, b := newPair(t, sideConfig{})
		a.post(driver.WorkRequest{ID: 1, Op: driver.OpAtomic, Atomic: driver.AtomicAdd, Width: width, Operand: 1, Remote: b.at(offset)})
		require.Equal(t, driver.RemoteInvalid, a.next().Status)
		require.Equal(t, word(0), b.arena.Bytes()[:8])
	}
}
