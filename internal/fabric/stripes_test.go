//go:build linux

package fabric_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/tcp"
)

// stripedSize is that of transfers which use several connections.
const stripedSize = 8<<20 + 4321

// stripedPair returns two fabrics over tcp whose large transfers use n connections. It also returns
// a region at rank 1 and rank 0's view of it.
func stripedPair(t *testing.T, n int) (*rig, *fabric.Remote, []byte) {
	r := &rig{}
	for rank := range 2 {
		f, err := fabric.New(t.Context(), fabric.Config{Rank: rank, Heap: 64 << 20, FMAMax: -1, Connections: n,
			Providers: []driver.Provider{tcp.New(tcp.Config{Listen: "127.0.0.1"})}}, r.control(rank))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		r.ranks = append(r.ranks, f)
	}
	mem := r.region(t, 1, stripedSize+64, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	return r, remote, mem
}

// pattern returns n bytes that no shift turns into themselves.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i) ^ byte(i>>8)*7 ^ byte(i>>16)*31 ^ seed
	}
	return b
}

func TestStripedTransfersArriveWhole(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		r, remote, mem := stripedPair(t, n)
		for round := range byte(3) {
			want := pattern(stripedSize, round)
			require.NoError(t, remote.Write(watched(t), 16, want))
			require.NoError(t, remote.Peer.Flush(watched(t)))
			require.True(t, bytes.Equal(want, mem[16:][:stripedSize]))
			got := make([]byte, stripedSize)
			require.NoError(t, remote.Read(watched(t), 16, got))
			require.True(t, bytes.Equal(want, got))
		}
		require.Equal(t, n, r.ranks[1].Inbound(), "connections")
	}
}

// TestStripedPutIsBeforeItsFlag has the target compare all bytes when it sees the flag.
func TestStripedPutIsBeforeItsFlag(t *testing.T) {
	r, remote, mem := stripedPair(t, 4)
	const flagAt = (stripedSize + 7) &^ 7
	flag := mem[flagAt:][:8]
	for round := range byte(4) {
		want := pattern(stripedSize, round)
		seen := make(chan error, 1)
		go func() {
			err := r.ranks[1].Wait(watched(t), func() bool { return atomics.Apply(flag, driver.AtomicLoad, 0, 0) == uint64(round)+1 })
			if err == nil && !bytes.Equal(want, mem[:stripedSize]) {
				err = errors.New("the flag is ahead of the data")
			}
			seen <- err
		}()
		require.NoError(t, remote.Put(watched(t), told(0, want, fabric.Flag{Offset: flagAt, Value: uint64(round) + 1})))
		require.NoError(t, <-seen)
	}
}

// TestStripedPutIsBehindOrder overwrites what puts ahead of an Order wrote.
func TestStripedPutIsBehindOrder(t *testing.T) {
	_, remote, mem := stripedPair(t, 4)
	want := pattern(stripedSize, 9)
	for range 3 {
		for at := 0; at < stripedSize-4096; at += 1 << 20 {
			require.NoError(t, remote.Write(watched(t), at, make([]byte, 4096)))
		}
		remote.Peer.Order()
		require.NoError(t, remote.Write(watched(t), 0, want))
		require.True(t, bytes.Equal(want, mem[:stripedSize]), "the put has arrived when it returns")
	}
}

// TestCanceledStripedTransferUsesItsMemoryNoMore cancels transfers at several moments. The
// source is then the caller's, and bytes that arrive are those it had before.
func TestCanceledStripedTransferUsesItsMemoryNoMore(t *testing.T) {
	_, remote, mem := stripedPair(t, 4)
	src := pattern(stripedSize, 3)
	require.NoError(t, remote.Write(watched(t), 0, src)) // connects
	for round := range 8 {
		ctx, cancel := context.WithCancelCause(watched(t))
		ended := make(chan error, 1)
		dst := make([]byte, stripedSize)
		go func() {
			if round%2 == 0 {
				ended <- remote.Write(ctx, 0, src)
			} else {
				ended <- remote.Read(ctx, 0, dst)
			}
		}()
		for range round * 50 {
			remote.Peer.Order() // passes some time
		}
		cancel(errMade)
		if err := <-ended; err != nil {
			require.ErrorIs(t, err, errMade)
		}
		clear(src) // must not arrive
		clear(dst)
		require.NoError(t, remote.Peer.Flush(watched(t)))
		src = pattern(stripedSize, 3)
		require.True(t, bytes.Equal(src, mem[:stripedSize]))
		require.True(t, bytes.Equal(make([]byte, stripedSize), dst))
	}
	require.NoError(t, remote.Write(watched(t), 0, src), "the connections still work")
}

// TestFlushCoversStripes posts over the stripes alone, as a transfer that ends early does. A
// flush of the peer waits for a response over each of them.
func TestFlushCoversStripes(t *testing.T) {
	_, remote, mem := stripedPair(t, 4)
	require.NoError(t, remote.Write(watched(t), 0, pattern(stripedSize, 0))) // connects
	require.NoError(t, remote.Peer.Flush(watched(t)))
	require.Zero(t, remote.Peer.LateStripes())
	for round := range byte(20) {
		want := pattern(64, round)
		require.NoError(t, remote.PutOverStripes(watched(t), want))
		require.Equal(t, 3, remote.Peer.LateStripes())
		require.NoError(t, remote.Peer.Flush(watched(t)))
		require.Zero(t, remote.Peer.LateStripes())
		require.Equal(t, want, mem[:64])
	}
}

func TestDeathEndsStripedTransfer(t *testing.T) {
	r, remote, _ := stripedPair(t, 4)
	src := pattern(stripedSize, 1)
	require.NoError(t, remote.Write(watched(t), 0, src))
	ended := make(chan error, 1)
	go func() {
		for {
			if err := remote.Write(watched(t), 0, src); err != nil {
				ended <- err
				return
			}
		}
	}()
	r.ranks[0].RankDied(1, "made")
	require.ErrorIs(t, <-ended, fabric.ErrRankDead)
}

func TestRetiredRegionRefusesStripedTransfer(t *testing.T) {
	_, remote, _ := stripedPair(t, 3)
	src := pattern(stripedSize, 1)
	require.NoError(t, remote.Write(watched(t), 0, src))
	remote.Retire(errMade)
	require.ErrorIs(t, remote.Write(watched(t), 0, src), errMade)
}
