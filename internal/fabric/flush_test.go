//go:build linux

package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
)

// TestUnflushedLeavesOutToldRanksInOrder: it posts a READ to a rank that gets no flag, and to a rank at which a
// flag would overtake posts, such as those of stripes.
func TestUnflushedLeavesOutToldRanksInOrder(t *testing.T) {
	told := []int{1}
	r, remote, device := fillable(t)
	require.NoError(t, remote.Write(watched(t), 0, make([]byte, 4)))
	require.NoError(t, fabric.Flush(watched(t), r.ranks[0].Unflushed(told, told)))
	require.Equal(t, "W4i", device.take())
	require.NoError(t, r.ranks[0].FlushTo(watched(t), told))
	require.Equal(t, "8s", device.take())

	r, remote, mem := stripedPair(t, 4)
	require.NoError(t, remote.Write(watched(t), 0, pattern(stripedSize, 0))) // connects
	require.NoError(t, remote.Peer.Flush(watched(t)))
	want := pattern(64, 1)
	require.NoError(t, remote.PutOverStripes(watched(t), want))
	require.Equal(t, 3, remote.Peer.LateStripes())
	require.NoError(t, fabric.Flush(watched(t), r.ranks[0].Unflushed(told, told)))
	require.Zero(t, remote.Peer.LateStripes())
	require.Equal(t, want, mem[:64])
}
