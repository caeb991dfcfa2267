//go:build linux

package fabric_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/memory"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/shm"
)

var errShort = fmt.Errorf("open: %w", driver.ErrExhausted)

// A nearRig holds ranks that show their cards, and the names of the services that they called.
type nearRig struct {
	rig
	table *memory.Memfd
	sent  sync.Map              // count by service
	fails atomic.Pointer[error] // of all calls; nil: they work
}

func newNearRig(t *testing.T, n, fmaMax int) *nearRig {
	r := &nearRig{}
	var err error
	r.table, err = memory.NewReservations(n)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.table.Close()) })
	for rank := range n {
		shared, err := memory.OpenReservations(fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), r.table.FD()), n)
		require.NoError(t, err)
		f, err := fabric.New(t.Context(), fabric.Config{Rank: rank, Heap: 1 << 20, Shared: true, FMAMax: fmaMax, Reservations: shared,
			Providers: []driver.Provider{shm.New(shm.Config{})}}, r.call(rank))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		r.ranks = append(r.ranks, f)
	}
	return r
}

// newNearPair has rank 0 map memory of rank 1, whose name is x. No rank has posted yet.
func newNearPair(t *testing.T) (r *nearRig, mem []byte, remote *fabric.Remote) {
	r = newNearRig(t, 2, -1)
	mem = r.region(t, 1, 64, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	return r, mem, remote
}

func (r *nearRig) call(from int) fabric.Control {
	return func(ctx context.Context, rank int, service string, payload []byte) ([]byte, error) {
		n, _ := r.sent.LoadOrStore(service, new(atomic.Int64))
		n.(*atomic.Int64).Add(1)
		if err := r.fails.Load(); err != nil {
			return nil, *err
		}
		return r.ranks[rank].Serve(ctx, from, service, payload)
	}
}

func (r *nearRig) calls(service string) int {
	if n, ok := r.sent.Load(service); ok {
		return int(n.(*atomic.Int64).Load())
	}
	return 0
}

func TestNearRankIsMappedWithoutACall(t *testing.T) {
	r := newNearRig(t, 3, -1)
	mem := r.region(t, 1, 64, "x")
	for _, from := range []int{0, 2} {
		remote, err := r.ranks[from].Resolve(watched(t), 1, "x")
		require.NoError(t, err)
		require.NotNil(t, remote.Peer.Bell())
		require.NoError(t, remote.Write(watched(t), 8*from, []byte{7}))
		require.NoError(t, remote.Peer.Flush(watched(t)))
		require.EqualValues(t, 7, mem[8*from])
	}
	require.Zero(t, r.calls("connect"))
	require.Zero(t, r.calls("region"))
	require.Zero(t, r.ranks[1].Inbound(), "the target has no end of a connection")
}

// TestConnectNearMakesNoCall for ranks with cards, and for one that has none. Nor does ResolveNear.
func TestConnectNearMakesNoCall(t *testing.T) {
	r := newNearRig(t, 3, -1)
	mem := r.region(t, 1, 64, "x")
	require.Nil(t, r.ranks[0].ResolveNear(1, "x"), "it is not connected yet")
	for range 2 {
		r.ranks[0].ConnectNear([]int{2, 0, 1, 17})
	}
	var peers []int
	for _, p := range r.ranks[0].PeerStats() {
		peers = append(peers, p.Peer)
	}
	require.Equal(t, []int{1, 2}, peers)
	for _, rank := range []int{0, 1, 2, 17} {
		require.Nil(t, r.ranks[0].ResolveNear(rank, "y"), "rank %d", rank)
	}
	remote := r.ranks[0].ResolveNear(1, "x")
	require.NoError(t, remote.Write(watched(t), 8, []byte{7}))
	require.EqualValues(t, 7, mem[8])
	require.Zero(t, r.calls("connect")+r.calls("region"))
	_, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	r.ranks[1].RankDied(2, "killed")
	r.ranks[1].ConnectNear([]int{2})
	require.Empty(t, r.ranks[1].PeerStats())
	require.NoError(t, r.ranks[0].Close())
	r.ranks[0].ConnectNear([]int{1})
}

// TestRegionBesideTheBellIsMappedWithoutItsKey spoils what the list of rank 1 says. A place that does not exist, or is
// no word's, makes rank 0 use the key.
func TestRegionBesideTheBellIsMappedWithoutItsKey(t *testing.T) {
	r, mem, _ := newNearPair(t)
	for i, spoil := range []struct {
		key   bool
		place uint64
		fails bool
	}{{}, {key: true}, {place: 1 << 62}, {place: 8}, {true, 1 << 62, true}} {
		fabric.SpoilListed(r.ranks[1], "x", spoil.key, spoil.place)
		remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
		if spoil.fails {
			require.ErrorIs(t, err, driver.ErrAccess)
			continue
		}
		require.NoError(t, err)
		require.NoError(t, remote.Write(watched(t), i, []byte{5}))
		require.NoError(t, remote.Peer.Flush(watched(t)))
		require.EqualValues(t, 5, mem[i])
	}
	require.Zero(t, r.calls("connect")+r.calls("region"))
}

// TestFirstPostToANearRankMakesOneConnection has many goroutines post at the same time.
func TestFirstPostToANearRankMakesOneConnection(t *testing.T) {
	r, mem, remote := newNearPair(t)
	over := remote.Unmapped()
	var posting sync.WaitGroup
	for i := range 64 {
		posting.Go(func() {
			if err := over.Write(watched(t), i, []byte{byte(i)}); err != nil {
				t.Error(err)
			}
		})
	}
	posting.Wait()
	require.NoError(t, remote.Peer.Flush(watched(t)))
	for i := range mem {
		require.EqualValues(t, i, mem[i])
	}
	require.Equal(t, 1, r.calls("connect"))
	require.Equal(t, 1, r.ranks[1].Inbound())
}

func TestFlushOfARankThatStoredAloneDoesNotWait(t *testing.T) {
	r, mem, remote := newNearPair(t)
	require.NoError(t, remote.Write(watched(t), 0, []byte{1}))
	require.False(t, r.ranks[0].FlushMayWait())
	require.NoError(t, r.ranks[0].FlushTo(watched(t), []int{1}))
	require.NoError(t, remote.Unmapped().Write(watched(t), 1, []byte{2}))
	require.True(t, r.ranks[0].FlushMayWait())
	require.NoError(t, r.ranks[0].FlushTo(watched(t), []int{1}))
	require.Equal(t, []byte{1, 2}, mem[:2])
	r.ranks[0].RankDied(1, "killed")
	require.ErrorIs(t, r.ranks[0].FlushTo(watched(t), []int{1}), fabric.ErrRankDead)
}

func TestFlushOfStoresFailsForARankThatIsGone(t *testing.T) {
	r, _, _ := newNearPair(t)
	r.ranks[0].RankDied(1, "killed")
	require.ErrorIs(t, r.ranks[0].FlushTo(watched(t), []int{0, 1}), fabric.ErrRankDead)
	require.NoError(t, r.ranks[0].FlushTo(watched(t), []int{0}))
}

// TestFlushWaitsForAComposerThatIsTheFirstToPost has it find no room for a while.
func TestFlushWaitsForAComposerThatIsTheFirstToPost(t *testing.T) {
	r, mem, remote := newNearPair(t)
	over, room := remote.Unmapped(), atomic.Bool{}
	c := &fabric.Composer{Compose: func(ctx context.Context) error {
		if !room.Load() {
			return fabric.ErrNoRoom
		}
		return over.Write(ctx, 0, []byte{9})
	}}
	require.ErrorIs(t, remote.Peer.Post(remote.Peer.NoWait(), c), fabric.ErrNoRoom)
	ended, cancel := context.WithCancel(watched(t))
	cancel()
	require.ErrorIs(t, r.ranks[0].FlushTo(ended, []int{1}), context.Canceled)
	require.ErrorIs(t, remote.Peer.Flush(ended), context.Canceled)
	room.Store(true)
	require.NoError(t, r.ranks[0].FlushTo(watched(t), []int{1}))
	require.EqualValues(t, 9, mem[0])
}

// TestNoWaitPutToANearRankLeavesLater has the first post be one that may not wait.
func TestNoWaitPutToANearRankLeavesLater(t *testing.T) {
	_, mem, remote := newNearPair(t)
	over := remote.Unmapped()
	c := &fabric.Composer{Compose: func(ctx context.Context) error { return over.Write(ctx, 0, []byte{9}) }}
	require.NoError(t, remote.Peer.Post(watched(t), c))
	require.NoError(t, remote.Peer.Flush(watched(t)))
	require.EqualValues(t, 9, mem[0])
}

func TestFailedFirstPostToANearRankIsThePeersError(t *testing.T) {
	r, _, remote := newNearPair(t)
	r.fails.Store(&errMade)
	err := remote.Unmapped().Write(watched(t), 0, []byte{1})
	var gone *fabric.RankError
	require.ErrorAs(t, err, &gone)
	require.Equal(t, 1, gone.Rank)
	require.ErrorContains(t, err, errMade.Error())
	require.Zero(t, r.ranks[1].Inbound())
	require.False(t, r.ranks[0].FlushMayWait())
	require.ErrorIs(t, r.ranks[0].FlushTo(watched(t), []int{0, 1}), gone.Kind)
	require.ErrorIs(t, remote.Peer.Flush(watched(t)), gone.Kind)
	require.NoError(t, r.ranks[0].FlushTo(watched(t), []int{0}))
}

// TestShortageOfAFirstPostIsTheErrorOfThatPostAlone has the next post find descriptors again.
func TestShortageOfAFirstPostIsTheErrorOfThatPostAlone(t *testing.T) {
	r, mem, remote := newNearPair(t)
	r.fails.Store(&errShort)
	require.ErrorIs(t, remote.Unmapped().Write(watched(t), 0, []byte{1}), driver.ErrExhausted)
	require.NoError(t, remote.Write(watched(t), 1, []byte{2}), "a store needs no queue pair")
	r.fails.Store(nil)
	require.NoError(t, remote.Unmapped().Write(watched(t), 0, []byte{1}))
	require.NoError(t, remote.Peer.Flush(watched(t)))
	require.Equal(t, []byte{1, 2}, mem[:2])
}

// TestComposerPausesBetweenAttemptsBehindAShortage has a composer wait in line, which tries again
// whenever it is called. Six attempts take five pauses, of which the first has a millisecond.
func TestComposerPausesBetweenAttemptsBehindAShortage(t *testing.T) {
	r, mem, remote := newNearPair(t)
	r.fails.Store(&errShort)
	over := remote.Unmapped()
	c := &fabric.Composer{Compose: func(ctx context.Context) error { return over.Write(ctx, 0, []byte{9}) }}
	began, posted := time.Now(), make(chan error, 1)
	ctx := watched(t)
	go func() { posted <- remote.Peer.Post(ctx, c) }()
	for r.calls("connect") < 6 && ctx.Err() == nil {
		require.Empty(t, posted)
		time.Sleep(time.Millisecond)
	}
	require.GreaterOrEqual(t, time.Since(began), (1+2+4+8+16)*time.Millisecond)
	r.fails.Store(nil)
	require.NoError(t, <-posted)
	require.NoError(t, remote.Peer.Flush(watched(t)))
	require.EqualValues(t, 9, mem[0])
}

// TestNearRankThatIsGoneReturnsItsError has the launcher report a death before any call.
func TestNearRankThatIsGoneReturnsItsError(t *testing.T) {
	r, _, remote := newNearPair(t)
	r.ranks[0].RankDied(1, "by a signal")
	require.ErrorIs(t, remote.Unmapped().Write(watched(t), 0, []byte{1}), fabric.ErrRankDead)
	require.ErrorIs(t, remote.Peer.Flush(watched(t)), fabric.ErrRankDead)
	r.ranks[1].RankDied(0, "by a signal")
	_, err := r.ranks[1].Resolve(watched(t), 0, "x")
	require.ErrorIs(t, err, fabric.ErrRankDead)
	require.Zero(t, r.calls("connect"))
}

// TestSpoiledCardsLeadToACall changes single bytes of a card, which other processes can write.
func TestSpoiledCardsLeadToACall(t *testing.T) {
	called := 0
	for at := range 128 {
		r := newNearRig(t, 2, -1)
		mem := r.region(t, 1, 64, "x")
		r.table.Bytes()[cardOfRank1+at] ^= 0x41
		remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
		require.NoError(t, err, "byte %d", at)
		require.NoError(t, remote.Write(watched(t), 0, []byte{7}))
		require.EqualValues(t, 7, mem[0], "byte %d", at)
		called += r.calls("connect")
	}
	require.Greater(t, called, 100, "most bytes matter")
}

// cardOfRank1 is where the card of rank 1 begins, as package memory lays it out.
const cardOfRank1 = 4096 + 512 + 16

func TestRanksThatMapNothingShowNoCards(t *testing.T) {
	r := newNearRig(t, 2, 0)
	r.region(t, 1, 64, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	require.Nil(t, remote.Mem)
	require.Equal(t, 1, r.calls("connect"))
}
