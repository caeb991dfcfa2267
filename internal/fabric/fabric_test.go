package fabric_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/trace"
)

func TestMappedRemoteIsTheTargetsMemory(t *testing.T) {
	remote, mem := pair(t, 128, -1, faulty.Plan{})
	remote.Mem[5] = 7
	require.EqualValues(t, 7, mem[5])
	require.NotNil(t, remote.Peer.Bell())
	require.NoError(t, remote.Peer.FlushMapped())
}

func TestQueuedReadReturnsTheBytesOfAWrite(t *testing.T) {
	for _, size := range []int{1, 4096, 200 << 10} {
		remote, mem := pair(t, size, 0, faulty.Plan{})
		require.Nil(t, remote.Mem)
		src := make([]byte, size)
		for i := range src {
			src[i] = byte(i * 3)
		}
		require.NoError(t, remote.Write(watched(t), 0, src))
		require.NoError(t, remote.Peer.Flush(watched(t)))
		require.Equal(t, src, mem)
		dst := make([]byte, size)
		require.NoError(t, remote.Read(watched(t), 0, dst))
		require.Equal(t, src, dst)
	}
}

func TestWritesWaitForRoomInAFullQueue(t *testing.T) {
	remote, mem := pair(t, 8, 0, faulty.Plan{Seed: 5, QueueFull: 0.2, PartialPosts: 0.5, DelayStarts: 0.5})
	for i := range 2000 {
		require.NoError(t, remote.Write(watched(t), i%8, []byte{byte(i)}))
	}
	require.NoError(t, remote.Peer.Flush(watched(t)))
	require.Equal(t, []byte{200, 201, 202, 203, 204, 205, 206, 207}, mem)
}

// TestEmulatedAtomicsGiveTheResultsOfNativeAtomics compares the two ways at every width
// and offset within a word.
func TestEmulatedAtomicsGiveTheResultsOfNativeAtomics(t *testing.T) {
	native, nativeMem := pair(t, 64, 0, faulty.Plan{})
	emulated, emulatedMem := pair(t, 64, 0, faulty.Plan{HideExtendedAtomics: true})
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		width := uint8(1) << rnd.IntN(4)
		offset := rnd.IntN(64/int(width)) * int(width)
		op := driver.AtomicOp(1 + rnd.IntN(int(driver.AtomicMaxUint)))
		if op == driver.AtomicStore || !op.Fits(int(width)) {
			continue
		}
		a := fabric.Atomic{Op: op, Width: width,
			Operand: rnd.Uint64() >> (64 - 8*width), Compare: uint64(nativeMem[offset])}
		want, err := native.Fetch(watched(t), offset, a)
		require.NoError(t, err)
		got, err := emulated.Fetch(watched(t), offset, a)
		require.NoError(t, err)
		require.Equal(t, want, got, "%+v at %d", a, offset)
		require.Equal(t, nativeMem, emulatedMem, "%+v at %d", a, offset)
	}
}

func TestFlagArrivesBehindItsData(t *testing.T) {
	for _, plan := range []faulty.Plan{{HideMapper: true}, {HideMapper: true, HideExtendedAtomics: true},
		{Seed: 9, DelayStarts: 0.5, Reorder: 1, PartialPosts: 0.5}} {
		remote, mem := pair(t, 4096+8, 0, plan)
		flag := atomics.Word64(mem[4096:])
		src := make([]byte, 4096)
		for round := uint64(1); round <= 50; round++ {
			for i := range src {
				src[i] = byte(round)
			}
			f := fabric.Flag{Offset: 4096, Value: round}
			if round%2 == 0 {
				f.Add, f.Value = true, 1
			}
			require.NoError(t, remote.Put(watched(t), told(0, src, f)))
			for flag.Load() != round {
				require.NoError(t, watched(t).Err())
				time.Sleep(time.Microsecond)
			}
			require.EqualValues(t, round, mem[0])
			require.EqualValues(t, round, mem[4095])
		}
	}
}

func TestRequestReturnsErrEndedAfterItsWait(t *testing.T) {
	remote, _ := pair(t, 64, 0, faulty.Plan{})
	req, err := remote.StartRead(watched(t), 0, make([]byte, 64))
	require.NoError(t, err)
	require.NoError(t, req.Wait(watched(t)))
	require.ErrorIs(t, req.Wait(watched(t)), fabric.ErrEnded)
	require.True(t, req.Done())
	next, err := remote.StartRead(watched(t), 0, make([]byte, 64))
	require.NoError(t, err)
	require.ErrorIs(t, req.Wait(watched(t)), fabric.ErrEnded, "although its operation is in use again")
	require.NoError(t, next.Wait(watched(t)))
	require.NoError(t, fabric.Request{}.Wait(watched(t)))
}

func TestRefusedRequestFailsAllLaterOperationsOnItsPeer(t *testing.T) {
	remote, _ := pair(t, 64, 0, faulty.Plan{Errors: []faulty.Error{{Request: 3, Status: driver.RemoteAccess}}})
	var err error
	for range 10 {
		if err = remote.Read(watched(t), 0, make([]byte, 8)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, driver.ErrAccess)
	var e *fabric.RankError
	require.ErrorAs(t, err, &e)
	require.Equal(t, 1, e.Rank)
	require.ErrorIs(t, remote.Write(watched(t), 0, []byte{1}), driver.ErrAccess)
	require.ErrorIs(t, remote.Peer.Flush(watched(t)), driver.ErrAccess)
}

func TestCutConnectionReturnsErrUnreachableOrErrRankDead(t *testing.T) {
	t.Parallel() // it waits for a second or more
	for _, dies := range []bool{false, true} {
		r := newRig(t, 2, 0, faulty.Plan{Cuts: []faulty.Cut{{Request: 2}}})
		r.region(t, 1, 64, "x")
		remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
		require.NoError(t, err)
		if dies {
			time.AfterFunc(10*time.Millisecond, func() { r.ranks[0].RankDied(1, "killed") })
		}
		for err == nil {
			err = remote.Read(watched(t), 0, make([]byte, 8))
		}
		if dies {
			require.ErrorIs(t, err, fabric.ErrRankDead, "the launcher's word counts more than the cut")
		} else {
			require.ErrorIs(t, err, fabric.ErrUnreachable)
		}
	}
}

func TestRankDiedEndsStartedRequestsWithErrRankDead(t *testing.T) {
	r := newRig(t, 2, 0, faulty.Plan{Seed: 1, DelayStarts: 1, MaxDelay: time.Minute, MaxPolls: 1 << 40})
	r.region(t, 1, 64, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	req, err := remote.StartRead(watched(t), 0, make([]byte, 8))
	require.NoError(t, err)
	require.False(t, req.Done())
	epoch := r.ranks[0].Health()
	r.ranks[0].RankDied(1, "killed")
	require.ErrorIs(t, req.Wait(watched(t)), fabric.ErrRankDead)
	require.Greater(t, r.ranks[0].Health(), epoch)
	require.ErrorIs(t, r.ranks[0].Gone([]int{0, 1}), fabric.ErrRankDead)
	require.NoError(t, r.ranks[0].Gone([]int{0}))
}

// TestResolveReturnsTheCauseOfTheJobsEnd ends the context of a rank by the report of an end.
func TestResolveReturnsTheCauseOfTheJobsEnd(t *testing.T) {
	resolve := func(ctx context.Context, f *fabric.Fabric, _ uint64) error {
		_, err := f.Resolve(ctx, 1, "x")
		return err
	}
	reach := func(ctx context.Context, f *fabric.Fabric, id uint64) error {
		_, err := f.Reach(ctx, 1, id)
		return err
	}
	for last, find := range map[string]func(context.Context, *fabric.Fabric, uint64) error{"connect": resolve, "region": reach} { // by the last request to which the peer responds
		t.Run(last, func(t *testing.T) {
			r, wire, cause := &rig{}, loop.New(), errors.New("the job is aborted")
			ctx, cancel := context.WithCancelCause(watched(t))
			defer cancel(nil)
			for rank := range 2 {
				f, err := fabric.New(t.Context(), fabric.Config{Rank: rank, Heap: 1 << 20, FMAMax: -1, Providers: []driver.Provider{wire}},
					func(c context.Context, to int, service string, payload []byte) ([]byte, error) {
						if service == last {
							defer cancel(cause)
							defer r.ranks[to].Close() //nolint:errcheck // closed again below
						}
						return r.ranks[to].Serve(c, rank, service, payload)
					})
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, f.Close()) })
				r.ranks = append(r.ranks, f)
			}
			id, _, found := r.ranks[1].RegionOf(r.region(t, 1, 8, "x"))
			require.True(t, found)
			require.ErrorIs(t, find(ctx, r.ranks[0], id), cause)
		})
	}
}

func TestUnknownRegionsRanksAndServicesReturnErrors(t *testing.T) {
	r := newRig(t, 2, -1, faulty.Plan{})
	r.region(t, 0, 8, "x")
	_, err := r.ranks[0].Resolve(watched(t), 1, "nowhere")
	require.ErrorContains(t, err, `no region "nowhere"`)
	_, err = r.ranks[0].Resolve(watched(t), 0, "nowhere")
	require.ErrorIs(t, err, driver.ErrInvalid)
	_, err = r.ranks[0].Resolve(watched(t), 5, "x")
	require.ErrorIs(t, err, errNobody)
	block, err := r.ranks[0].Arena().Alloc(8)
	require.NoError(t, err)
	_, err = r.ranks[0].Register(t.Context(), "x", block.Memory)
	require.ErrorContains(t, err, `region "x" exists`)
	_, err = r.ranks[0].Serve(t.Context(), 1, "haircut", nil)
	require.ErrorContains(t, err, "unknown service")
	_, err = r.ranks[0].Serve(t.Context(), 1, "region", []byte("{"))
	require.Error(t, err)
}

func TestResolveConnectsAgainAfterAFailedConnection(t *testing.T) {
	r := newRig(t, 2, 0, faulty.Plan{})
	r.region(t, 1, 8, "x")
	one := r.ranks[1]
	r.ranks[1] = nil
	_, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.ErrorIs(t, err, errNobody)
	r.ranks[1] = one
	_, err = r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
}

func TestPeerStatsCountOperationsAndBytes(t *testing.T) {
	r := newRig(t, 2, 0, faulty.Plan{})
	r.region(t, 1, 64, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	require.NoError(t, remote.Write(watched(t), 0, make([]byte, 5)))
	_, err = remote.Fetch(watched(t), 8, fabric.Atomic{Op: driver.AtomicAdd, Width: 8, Operand: 1})
	require.NoError(t, err)
	remote.Peer.Stats.Count(100)
	require.Equal(t, []fabric.PeerStats{{Peer: 1, Provider: "loop", Ops: 3, Bytes: 113, Staged: 5}}, r.ranks[0].PeerStats())
}

// A flush makes no round trip for posts that a completion has already shown applied.
func TestFlushPostsARequestOnlyForUnconfirmedWrites(t *testing.T) {
	wire := trace.New(loop.New())
	r := newRigOver(t, 2, 0, func() driver.Provider { return wire })
	r.region(t, 1, 512<<10, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	small, large := make([]byte, 8), make([]byte, 512<<10)
	for name, c := range map[string]struct {
		do      func() error
		flushes uint64
	}{
		"nothing":   {func() error { return nil }, 0},
		"small put": {func() error { return remote.Write(watched(t), 0, small) }, 1},
		"large put": {func() error { return remote.Write(watched(t), 0, large) }, 0},
		"large put, small put": {func() error {
			return errors.Join(remote.Write(watched(t), 0, large), remote.Write(watched(t), 0, small))
		}, 1},
		"small put, get": {func() error {
			return errors.Join(remote.Write(watched(t), 0, small), remote.Read(watched(t), 8, small))
		}, 0},
	} {
		require.NoError(t, remote.Peer.Flush(watched(t)))
		require.NoError(t, c.do(), name)
		wire.Reset()
		require.NoError(t, remote.Peer.Flush(watched(t)))
		total := wire.Snapshot().Total
		require.Equal(t, c.flushes, total.Requests(), name)
	}
}

func TestNewReturnsAnErrorForATooLargeHeap(t *testing.T) {
	_, err := fabric.New(t.Context(), fabric.Config{Heap: 1 << 62, Shared: true}, nil)
	require.ErrorContains(t, err, "heap of")
}

func TestClosedFabricReturnsErrClosed(t *testing.T) {
	r := newRig(t, 2, 0, faulty.Plan{})
	mem := r.region(t, 1, 8, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	require.NoError(t, r.ranks[0].Close())
	require.NoError(t, r.ranks[0].Close(), "closing again")
	require.ErrorIs(t, remote.Write(watched(t), 0, []byte{1}), fabric.ErrClosed)
	require.ErrorIs(t, remote.Peer.Flush(watched(t)), fabric.ErrClosed)
	_, err = r.ranks[0].Peer(watched(t), 1)
	require.ErrorIs(t, err, fabric.ErrClosed)
	require.Zero(t, binary.NativeEndian.Uint64(mem))
}

func TestWaitReturnsTheCauseOfItsContext(t *testing.T) {
	r := newRig(t, 1, -1, faulty.Plan{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	require.ErrorIs(t, r.ranks[0].Wait(ctx, func() bool { return false }), cause)
	require.NoError(t, r.ranks[0].Wait(ctx, func() bool { return true }))
}

func TestRetiredRemoteReturnsItsError(t *testing.T) {
	remote, mem := pair(t, 64, 0, faulty.Plan{})
	gone := errors.New("withdrawn")
	remote.Retire(gone)
	require.ErrorIs(t, remote.Write(watched(t), 0, []byte{1}), gone)
	require.ErrorIs(t, remote.Read(watched(t), 0, make([]byte, 8)), gone)
	require.NoError(t, remote.Peer.Flush(watched(t)), "the connection is well")
	require.Zero(t, mem[0])
}

// byCPU is a plan under which the target's CPU applies atomics.
var byCPU = faulty.Plan{HideMapper: true, HideExtendedAtomics: true, HideCoherentAtomics: true}

func TestFlushWaitsForAtomicsOfTheTargetsCPU(t *testing.T) {
	remote, mem := pair(t, 64, -1, byCPU)
	for range 500 {
		require.NoError(t, remote.Update(watched(t), 8, fabric.Atomic{Op: driver.AtomicAdd, Width: 4, Operand: 3}))
	}
	require.NoError(t, remote.Peer.Flush(watched(t)))
	require.EqualValues(t, 1500, atomics.Uint(mem[8:12]))
	old, err := remote.Fetch(watched(t), 8, fabric.Atomic{Op: driver.AtomicSwap, Width: 4, Operand: 7})
	require.NoError(t, err)
	require.EqualValues(t, 1500, old)
}

func TestFlushReturnsErrAccessAfterARefusedUpdate(t *testing.T) {
	r := newRig(t, 2, -1, byCPU)
	block, err := r.ranks[1].Arena().Alloc(64)
	require.NoError(t, err)
	region, err := r.ranks[1].Register(t.Context(), "x", block.Memory)
	require.NoError(t, err)
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	require.NoError(t, region.Close())
	require.NoError(t, remote.Update(watched(t), 8, fabric.Atomic{Op: driver.AtomicAdd, Width: 8, Operand: 1}))
	require.ErrorIs(t, remote.Peer.Flush(watched(t)), driver.ErrAccess)
}
