//go:build linux

package fabric_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/tcp"
)

// TestSeverEndsThePostsOfADeadRank has rank 2 post after its death, as requests in a socket do.
func TestSeverEndsThePostsOfADeadRank(t *testing.T) {
	r := newRigOver(t, 3, 0, func() driver.Provider { return tcp.New(tcp.Config{Listen: "127.0.0.1"}) })
	mem := r.region(t, 1, 64, "x")
	survivor, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	dead, err := r.ranks[2].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	require.NoError(t, dead.Write(watched(t), 0, []byte{1}))
	require.NoError(t, dead.Peer.Flush(watched(t)))

	r.ranks[0].RankDied(2, "killed")
	enough := errors.New("enough")
	soon, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	require.ErrorIs(t, survivor.Peer.Sever(soon, 2), enough, "rank 1 does not know of the death")
	require.NoError(t, dead.Write(watched(t), 0, []byte{2}))
	require.NoError(t, dead.Peer.Flush(watched(t)))

	r.ranks[1].RankDied(2, "killed")
	require.NoError(t, survivor.Peer.Sever(watched(t), 2))
	if err = dead.Write(watched(t), 0, []byte{3}); err == nil {
		err = dead.Peer.Flush(watched(t))
	}
	require.Error(t, err)
	require.Equal(t, byte(2), mem[0])
	require.NoError(t, survivor.Write(watched(t), 0, []byte{4}), "other ranks go on")
	require.NoError(t, survivor.Peer.Flush(watched(t)))
	require.NoError(t, survivor.Peer.Sever(watched(t), 2), "again")
	r.ranks[1].SetSites(make([]fabric.Site, 3), false)
	for _, none := range []int{-1, 3} {
		require.ErrorContains(t, survivor.Peer.Sever(watched(t), none), "no such rank")
	}
	var gone *fabric.RankError
	require.ErrorAs(t, r.ranks[1].Fate(2), &gone)
}
