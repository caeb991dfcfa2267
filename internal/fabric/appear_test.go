package fabric_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/atomics"
	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/trace"
)

// awaiting starts n goroutines of rank 0 that wait for a region of a rank.
func (r *rig) awaiting(ctx context.Context, rank, n int, name string) <-chan error {
	done := make(chan error, n)
	for range n {
		go func() {
			remote, err := r.ranks[0].AwaitRegion(ctx, rank, name)
			if err == nil && remote.Len != 64 {
				err = errors.New("another region")
			}
			done <- err
		}()
	}
	return done
}

func TestAwaitRegionWaitsUntilTheRegionIsRegistered(t *testing.T) {
	for _, mode := range []struct{ rank, fmaMax int }{{1, -1}, {1, 0}, {0, -1}, {0, 0}} {
		r := newRig(t, 2, mode.fmaMax, faulty.Plan{})
		const n = 5
		done := r.awaiting(watched(t), mode.rank, n, "late")
		require.Eventually(t, r.ranks[0].Bell().Waiting, testwatch.Patience(), time.Millisecond)
		r.region(t, mode.rank, 64, "unrelated")
		select {
		case err := <-done:
			require.Fail(t, "ended early", err)
		case <-time.After(time.Millisecond):
		}
		r.region(t, mode.rank, 64, "late")
		for range n {
			require.NoError(t, <-done)
		}
		remote, err := r.ranks[0].TryRegion(watched(t), mode.rank, "late")
		require.NoError(t, err)
		require.Equal(t, 64, remote.Len)
	}
}

func TestTryRegionReturnsNilForAnUnregisteredRegion(t *testing.T) {
	for _, rank := range []int{0, 1} {
		r := newRig(t, 2, -1, faulty.Plan{})
		remote, err := r.ranks[0].TryRegion(watched(t), rank, "x")
		require.NoError(t, err)
		require.Nil(t, remote)
	}
}

func TestAwaitRegionFindsARegionRegisteredDuringTheCall(t *testing.T) {
	r := newRig(t, 2, -1, faulty.Plan{})
	for i := range 200 {
		name := string(rune('a'+i%26)) + string(rune('0'+i/26))
		done := r.awaiting(watched(t), 1, 1, name)
		region(t, r.ranks[1], name)
		require.NoError(t, <-done)
	}
}

// region registers 64 bytes.
func region(t *testing.T, f *fabric.Fabric, name string) *fabric.Region {
	block, err := f.Arena().Alloc(64)
	require.NoError(t, err)
	made, err := f.Register(t.Context(), name, block.Memory)
	require.NoError(t, err)
	return made
}

func TestAwaitRegionReturnsTheErrorThatEndsItsWait(t *testing.T) {
	cause := errors.New("enough")
	for name, end := range map[string]struct {
		end  func(r *rig, cancel context.CancelCauseFunc)
		want error
	}{
		"with its context":  {func(_ *rig, cancel context.CancelCauseFunc) { cancel(cause) }, cause},
		"with its rank":     {func(r *rig, _ context.CancelCauseFunc) { r.ranks[0].RankDied(1, "killed") }, fabric.ErrRankDead},
		"with the job":      {func(r *rig, _ context.CancelCauseFunc) { r.ranks[0].End(fabric.ErrAborted, "") }, fabric.ErrAborted},
		"with its own rank": {func(r *rig, _ context.CancelCauseFunc) { _ = r.ranks[0].Close() }, fabric.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, -1, faulty.Plan{})
			ctx, cancel := context.WithCancelCause(watched(t))
			defer cancel(nil)
			done := r.awaiting(ctx, 1, 1, "never")
			require.Eventually(t, r.ranks[0].Bell().Waiting, testwatch.Patience(), time.Millisecond)
			end.end(r, cancel)
			require.ErrorIs(t, <-done, end.want)
		})
	}
}

func TestFabricKeepsOneAttachmentPerNameAndClosesItBeforeTheHeap(t *testing.T) {
	r := newRig(t, 1, -1, faulty.Plan{})
	made := 0
	first := func() fabric.Attachment { made++; return &attached{f: r.ranks[0]} }
	a, err := r.ranks[0].Attach("pipes", first)
	require.NoError(t, err)
	b, err := r.ranks[0].Attach("pipes", first)
	require.NoError(t, err)
	require.Same(t, a, b)
	require.Equal(t, 1, made)
	require.NoError(t, r.ranks[0].Close())
	require.NoError(t, a.(*attached).err, "the heap was there still")
	_, err = r.ranks[0].Attach("pipes", first)
	require.ErrorIs(t, err, fabric.ErrClosed)
}

// attached reports, as the fabric closes it, whether the fabric is still there.
type attached struct {
	f   *fabric.Fabric
	err error
	one sync.Once
}

func (a *attached) Close() {
	a.one.Do(func() { _, a.err = a.f.Arena().Alloc(8) })
}

// source is memory of rank 0 in a region of its own.
func (r *rig) source(t *testing.T, size int) *fabric.Region {
	block, err := r.ranks[0].Arena().Alloc(size)
	require.NoError(t, err)
	made, err := r.ranks[0].Register(t.Context(), "source", block.Memory)
	require.NoError(t, err)
	return made
}

func TestPutFromARegionArrivesBeforeItsFlag(t *testing.T) {
	for _, plan := range []faulty.Plan{{HideMapper: true},
		{HideMapper: true, NeedLocalKeys: true, MaxInline: 64, HideExtendedAtomics: true},
		{HideMapper: true, Seed: 9, DelayStarts: 0.5, Reorder: 1, PartialPosts: 0.5}} {
		for _, path := range []fabric.Path{fabric.FMA, fabric.Bulk} {
			for _, size := range []int{0, 1, 64, 4096, 100 << 10} {
				r := newRig(t, 2, -1, plan)
				mem := r.region(t, 1, 64+size, "x")
				remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
				require.NoError(t, err)
				src := r.source(t, 8+size)
				word := atomics.Word64(mem)
				for round := uint64(1); round <= 10; round++ {
					for i := range size {
						src.Bytes()[8+i] = byte(round) + byte(i)
					}
					put := told(64, src.Bytes()[8:], fabric.Flag{Value: round})
					put.Body.Path, put.Region = path, src
					require.NoError(t, remote.Put(watched(t), put))
					require.NoError(t, r.ranks[1].Wait(watched(t), func() bool { return word.Load() == round }))
					require.Equal(t, src.Bytes()[8:], mem[64:])
				}
			}
		}
	}
}

func TestPutFromARegionPostsOnceAndAllocatesNothing(t *testing.T) {
	wire := loop.New()
	traced := trace.New(wire)
	r := newRigOver(t, 2, 0, func() driver.Provider { return traced })
	r.region(t, 1, 64+4096, "x")
	remote, err := r.ranks[0].Resolve(watched(t), 1, "x")
	require.NoError(t, err)
	src := r.source(t, 4096)
	traced.Reset()
	put := told(64, src.Bytes(), fabric.Flag{Value: 1})
	put.Body.Path, put.Region = fabric.Bulk, src
	require.NoError(t, remote.Put(watched(t), put))
	total := traced.Snapshot().Total
	require.EqualValues(t, 1, total.PostCalls)
	require.EqualValues(t, 2, total.Posted[driver.OpWrite])
	require.NoError(t, remote.Peer.Flush(watched(t)))
	allocs := testing.AllocsPerRun(100, func() {
		_ = remote.Put(t.Context(), put)
		_ = remote.Peer.Flush(t.Context())
	})
	require.Zero(t, allocs)
}

func TestAwaitRegionReturnsAfterALostRegionReadyMessage(t *testing.T) {
	t.Parallel() // it waits for a second or more
	for _, fail := range []bool{false, true} {
		var lost atomic.Bool
		wire := loop.New()
		r := newRigThrough(t, 2, -1, func() driver.Provider { return wire }, func(next fabric.Control) fabric.Control {
			return func(ctx context.Context, rank int, service string, payload []byte) ([]byte, error) {
				if service != "region-ready" || lost.Swap(true) {
					return next(ctx, rank, service, payload)
				}
				if fail {
					return nil, errors.New("messages pile up")
				}
				return []byte("{}"), nil
			}
		})
		done := r.awaiting(watched(t), 1, 1, "late")
		require.Eventually(t, r.ranks[0].Bell().Waiting, testwatch.Patience(), time.Millisecond)
		r.region(t, 1, 64, "late")
		require.NoError(t, <-done)
		require.True(t, lost.Load(), "the word was never sent")
	}
}
