//go:build linux

package tcp

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

func randomBytes(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(uint64(n), 7))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

var sizes = []int{0, 1, 7, 8, 9, copyMax, copyMax + 1, directMin + 3, scratchSize, maxPayload - 1, maxPayload, maxPayload + 1, 3<<20 + 5}

func TestWriteThenReadGivesTheSameBytes(t *testing.T) {
	a, b, qa, _ := pair(t, 4<<20)
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			src, dst := randomBytes(n), make([]byte, n)
			post(t, qa, driver.WorkRequest{ID: 1, Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(src), Remote: b.at(3)})
			require.Equal(t, driver.OpWrite, a.success().Op)
			require.True(t, bytes.Equal(src, b.mem[3:3+n]))
			post(t, qa, driver.WorkRequest{ID: 2, Op: driver.OpRead, Flags: driver.Signaled, Local: segment(dst), Remote: b.at(3)})
			require.Equal(t, n, a.success().Bytes)
			require.True(t, bytes.Equal(src, dst))
		})
	}
}

func TestInlineWriteReleasesSource(t *testing.T) {
	a, b, qa, _ := pair(t, maxInline)
	src := randomBytes(maxInline)
	want := bytes.Clone(src)
	post(t, qa, driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Signaled | driver.Inline, Local: segment(src), Remote: b.at(0)})
	clear(src)
	a.success()
	require.True(t, bytes.Equal(want, b.mem[:maxInline]))
}

func TestSendFillsTheReceive(t *testing.T) {
	for _, n := range sizes {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			a, b, qa, qb := pair(t, 8)
			src, d1, d2 := randomBytes(n), make([]byte, n/3), make([]byte, n-n/3+5)
			post(t, qa, driver.WorkRequest{ID: 1, Op: driver.OpSend, Flags: driver.Signaled, Local: segment(src)})
			_, err := qb.PostRecv([]driver.RecvRequest{{ID: 9, Local: []driver.Segment{{Mem: d1}, {Mem: d2}}}})
			require.NoError(t, err)
			wc := b.success()
			require.Equal(t, driver.Completion{ID: 9, Op: driver.OpRecv, Bytes: n, QP: qb.num}, wc)
			require.True(t, bytes.Equal(src, append(d1, d2...)[:n]))
			a.success()
		})
	}
}

func TestWriteWithImmediate(t *testing.T) {
	a, b, qa, qb := pair(t, 2*maxPayload)
	src := randomBytes(maxPayload + 10)
	_, err := qb.PostRecv([]driver.RecvRequest{{ID: 9}})
	require.NoError(t, err)
	post(t, qa, driver.WorkRequest{ID: 1, Op: driver.OpWriteImm, Imm: 77, Flags: driver.Signaled, Local: segment(src), Remote: b.at(0)})
	wc := b.success()
	require.Equal(t, driver.Completion{ID: 9, Op: driver.OpRecvImm, HasImm: true, Imm: 77, Bytes: len(src), QP: qb.num}, wc)
	require.True(t, bytes.Equal(src, b.mem[:len(src)]))
	a.success()
}

func TestAtomicsOfEveryWidth(t *testing.T) {
	a, b, qa, _ := pair(t, 64)
	for row, width := range []int{1, 2, 4, 8} {
		for off := 0; off < 8; off += width {
			old := make([]byte, width)
			do := func(op driver.AtomicOp, operand, compare uint64) uint64 {
				post(t, qa, driver.WorkRequest{Op: driver.OpAtomic, Atomic: op, Width: uint8(width), Operand: operand, Compare: compare,
					Flags: driver.Signaled, Local: segment(old), Remote: b.at(uint64(8*row + off))})
				a.success()
				var v [8]byte
				copy(v[:], old)
				return binary.LittleEndian.Uint64(v[:])
			}
			do(driver.AtomicSwap, 0b1100, 0)
			require.EqualValues(t, 0b1100, do(driver.AtomicAdd, 2, 0))
			require.EqualValues(t, 0b1110, do(driver.AtomicAnd, 0b0111, 0))
			require.EqualValues(t, 0b0110, do(driver.AtomicOr, 1, 0))
			require.EqualValues(t, 0b0111, do(driver.AtomicXor, 0b0101, 0))
			require.EqualValues(t, 0b0010, do(driver.AtomicCmpSwap, 9, 3))
			require.EqualValues(t, 0b0010, do(driver.AtomicCmpSwap, 9, 2))
			require.EqualValues(t, 9, do(driver.AtomicLoad, 0, 0))
		}
	}
	require.Equal(t, bytes.Repeat([]byte{9}, 8), b.mem[:8])
}

func TestQueuePairConnectedWithItself(t *testing.T) {
	a := newNode(t, 2<<20, driver.AllAccess)
	q := a.newQP(16)
	connect(t, q, q.Address())
	src := randomBytes(1 << 20)
	post(t, q, driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Signaled, Local: segment(src), Remote: a.at(0)})
	a.success()
	require.True(t, bytes.Equal(src, a.mem[:len(src)]))
	old := make([]byte, 8)
	post(t, q, driver.WorkRequest{Op: driver.OpFetchAdd, Operand: 1, Flags: driver.Signaled, Local: segment(old), Remote: a.at(0)})
	a.success()
	require.Equal(t, src[:8], old)
}

// The peer makes no progress, so that the sockets fill up in the middle of payloads.
func TestInlineWritesToStalledPeerReleaseSources(t *testing.T) {
	const rounds = 60
	a, b, qa, _ := pair(t, rounds*maxInline)
	settled(t, a, b, qa)
	resume := b.stall()
	want := make([]byte, rounds*maxInline)
	for i := range rounds {
		n := []int{copyMax + 1, inlineCopy, inlineCopy + 1, 64<<10 + 1, 100_001, maxInline - 3, maxInline}[i%7]
		src := randomBytes(n)
		copy(want[i*maxInline:], src)
		third := n / 3
		post(t, qa, driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Inline, Remote: b.at(uint64(i * maxInline)),
			Local: []driver.Segment{{Mem: src[:1]}, {Mem: src[1:third]}, {Mem: src[third:]}}},
			driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Inline, Local: segment(src[:8]), Remote: b.at(uint64(i * maxInline))})
		clear(src)
	}
	resume()
	settled(t, a, b, qa)
	require.True(t, bytes.Equal(want, b.mem))
}

// TestBuffersOfCapturedPayloadsAreUsedAgain uses a socket that takes no bytes.
func TestBuffersOfCapturedPayloadsAreUsedAgain(t *testing.T) {
	for _, n := range []int{256 << 10, maxInline} {
		a, b, qa, _ := pair(t, 16<<20)
		settled(t, a, b, qa)
		flood, src, allocated := make([]byte, 16<<20), randomBytes(n), uint64(0)
		for round := range 6 {
			resume := b.stall()
			var before, after goruntime.MemStats
			goruntime.ReadMemStats(&before)
			post(t, qa, driver.WorkRequest{Op: driver.OpWrite, Local: segment(flood), Remote: b.at(0)})
			for range maxSpares {
				post(t, qa, driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Inline, Local: segment(src), Remote: b.at(0)})
			}
			goruntime.ReadMemStats(&after)
			if round > 1 { // the first make them
				allocated += after.TotalAlloc - before.TotalAlloc
			}
			resume()
			settled(t, a, b, qa)
		}
		require.Less(t, allocated, uint64(n), "for payloads of %d bytes", n)
	}
}
