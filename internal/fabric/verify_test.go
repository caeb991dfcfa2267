//go:build linux

package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/tcp"
)

// TestInterruptedProofLeavesNoOperation has the target die while the origin waits for the
// response that proves a connection.
func TestInterruptedProofLeavesNoOperation(t *testing.T) {
	for range 10 {
		r, last := &rig{}, loop.New()
		for rank := range 2 {
			over := &recorder{Provider: tcp.New(tcp.Config{Listen: "127.0.0.1"})}
			f, err := fabric.New(t.Context(), fabric.Config{Rank: rank, Heap: 1 << 20, FMAMax: -1,
				Providers: []driver.Provider{over, last}}, r.control(rank))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, f.Close()) })
			over.onRead = func() { f.RankDied(1-rank, "made") }
			r.ranks = append(r.ranks, f)
		}
		r.region(t, 1, 64, "x")
		_, err := r.ranks[0].Resolve(watched(t), 1, "x")
		require.ErrorIs(t, err, fabric.ErrRankDead)
		require.NoError(t, r.ranks[0].Close()) // waits for the attempt
		requests, operations := r.ranks[0].UnderWay()
		require.Zero(t, requests)
		require.Zero(t, operations)
	}
}
