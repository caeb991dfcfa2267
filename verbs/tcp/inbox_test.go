package tcp

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
)

// TestFramesOfAllLengthsFollowOneAnother mixes frames around every length at which they
// are read in another way.
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
