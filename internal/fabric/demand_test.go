//go:build linux

package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/tcp"
)

// TestRegionOfOneRankIsCommittedAsItsWaysAllow registers memory with a Demand, and then writes to its end.
func TestRegionOfOneRankIsCommittedAsItsWaysAllow(t *testing.T) {
	const size, there = 64 << 10, 4 << 10
	wire := loop.New()
	for _, c := range []struct {
		name    string
		open    func() driver.Provider
		at      []int // bytes that are committed at registration
		written []int // and after a write
	}{
		{"loop", func() driver.Provider { return wire }, []int{size}, []int{size}},
		{"tcp", func() driver.Provider { return tcp.New(tcp.Config{Listen: "127.0.0.1"}) }, nil, []int{size}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRigOver(t, 2, 0, c.open)
			var committed []int
			block, err := r.ranks[1].Arena().AllocOnDemand(size, there)
			require.NoError(t, err)
			block.Demand.Commit = func(n int) error { committed = append(committed, n); return nil }
			_, err = r.ranks[1].RegisterFor(watched(t), 0, "x", block.Memory)
			require.NoError(t, err)
			require.Equal(t, c.at, committed)
			remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
			require.NoError(t, err)
			require.NoError(t, remote.Write(watched(t), size-8, []byte("12345678")))
			require.NoError(t, remote.Peer.Flush(watched(t)))
			require.Equal(t, c.written, committed)
			require.Equal(t, "12345678", string(block.Bytes[size-8:]))
		})
	}
}
