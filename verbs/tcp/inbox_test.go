//go:build linux

package tcp

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// TestFramesOfAllLengthsFollowOneAnother mixes frames of lengths around each limit of
// the inbox.
func TestFramesOfAllLengthsFollowOneAnother(t *testing.T) {
	const most = 300 << 10
	a, b, qa, _ := pair(t, 2*most)
	lengths := []int{1, shortWrite, briefRead - 40, briefRead, directMin - 1, directMin, directMin + behindMax, longFrame - 1, longFrame, scratchSize, most}
	rnd := rand.New(rand.NewPCG(11, 22))
	src, want := make([]byte, most), make([]byte, len(b.mem))
	for round := range 300 {
		for range rnd.IntN(12) {
			n := lengths[rnd.IntN(len(lengths))]
			at := rnd.IntN(len(b.mem) - n)
			for i := range n {
				src[i] = byte(round + i*7)
			}
			copy(want[at:], src[:n])
			post(t, qa, driver.WorkRequest{Op: driver.OpWrite, Flags: driver.Inline, Local: segment(src[:n]), Remote: b.at(uint64(at))})
		}
		settled(t, a, b, qa)
		require.True(t, bytes.Equal(want, b.mem), "round %d", round)
	}
}

// TestShortWriteIsAppliedAsAWhole cuts writes of all lengths up to shortWrite at each
// byte. The memory must not change before the last byte.
func TestShortWriteIsAppliedAsAWhole(t *testing.T) {
	n := newNode(t, 2*shortWrite, driver.AllAccess)
	q := n.newQP(16)
	n.attach(q)
	untouched := make([]byte, len(n.mem))
	for size := 1; size <= shortWrite; size++ {
		for _, at := range []int{0, 8, 3} {
			payload := bytes.Repeat([]byte{byte(size)}, size)
			f := frame{kind: kindWrite, flags: flagLast, length: uint32(size), addr: n.at(uint64(at)).Addr, key: n.mr.RKey()}
			b := make([]byte, headerSizes[kindWrite])
			f.encode(b)
			b = append(b, payload...)
			for cut := 1; cut < len(b); cut++ {
				clear(n.mem)
				n.hears(q, func(l *link) {
					require.NoError(t, l.process(b[:cut]))
					require.Equal(t, untouched, n.mem, "%d bytes at %d, of which %d of %d came", size, at, cut, len(b))
					require.NoError(t, l.process(b[cut:]))
				})
				require.Equal(t, payload, n.mem[at:at+size])
				require.Equal(t, untouched[at+size:], n.mem[at+size:])
			}
		}
	}
}

// TestQueuePairMayEndDuringShortWrite ends a queue pair while the inbox keeps the front of
// a write for it. The connection goes on for the second stream, and skips the remaining
// bytes.
func TestQueuePairMayEndDuringShortWrite(t *testing.T) {
	for _, size := range []int{1, 8, shortWrite} {
		_, b, first, _ := duo(t, 4096)
		q := first[1]
		l := q.connection()
		f := frame{kind: kindWrite, flags: flagLast, stream: q.stream.id, length: uint32(size), addr: b.mr.Addr(), key: b.mr.RKey()}
		raw := make([]byte, headerSizes[kindWrite]+size)
		f.encode(raw)
		hears := func(mem []byte) {
			b.token.Lock()
			defer b.token.Unlock()
			l.lock()
			defer l.unlock()
			require.NoError(t, l.process(mem))
		}
		hears(raw[:len(raw)-1])
		require.NoError(t, q.Modify(t.Context(), driver.StateErr, driver.Attr{}))
		hears(raw[len(raw)-1:])
		require.Zero(t, l.in.fronts, "%d bytes", size)
	}
}
