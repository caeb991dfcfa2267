//go:build linux

package fabric_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/loop"
	"github.com/gopgas/gopgas/verbs/shm"
)

// newListedRig returns two ranks that map each other's memory, and a count of the requests
// about regions.
func newListedRig(t *testing.T, provider driver.Provider, shared bool) (*rig, *atomic.Int64) {
	r, requests := &rig{}, new(atomic.Int64)
	for rank := range 2 {
		f, err := fabric.New(t.Context(), fabric.Config{Rank: rank, Heap: 1 << 20, FMAMax: -1, Shared: shared, Providers: []driver.Provider{provider}},
			func(c context.Context, to int, service string, payload []byte) ([]byte, error) {
				if service == "region" {
					requests.Add(1)
				}
				return r.ranks[to].Serve(c, rank, service, payload)
			})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		r.ranks = append(r.ranks, f)
	}
	return r, requests
}

func TestResolveFindsRegionsInThePeersList(t *testing.T) {
	for name, newRig := range map[string]func() (*rig, *atomic.Int64){
		"loop": func() (*rig, *atomic.Int64) { return newListedRig(t, loop.New(), false) },
		"shm":  func() (*rig, *atomic.Int64) { return newListedRig(t, shm.New(shm.Config{}), true) },
	} {
		r, requests := newRig()
		whole, err := r.ranks[1].Arena().Alloc(256)
		require.NoError(t, err)
		region, err := r.ranks[1].Register(t.Context(), "whole", whole.Memory)
		require.NoError(t, err)
		part, err := region.Part("part", 64, 8)
		require.NoError(t, err)
		copy(whole.Bytes[64:], "a piece!")
		for _, find := range []func(context.Context, int, string) (*fabric.Remote, error){r.ranks[0].Resolve, r.ranks[0].AwaitRegion, r.ranks[0].TryRegion} {
			found, err := find(watched(t), 1, "part")
			require.NoError(t, err, name)
			require.Equal(t, "a piece!", string(found.Mem), name)
		}
		require.Zero(t, requests.Load(), name)
		require.NoError(t, part.Close())
		_, err = r.ranks[0].Resolve(watched(t), 1, "part")
		require.ErrorContains(t, err, "no region", name)
		require.EqualValues(t, 1, requests.Load(), "%s: the owner gets a request for a region that is not listed", name)
	}
}

// Regions beyond the room of the list are found by a request.
func TestResolveFindsRegionsThatTheListHasNoRoomFor(t *testing.T) {
	r, requests := newListedRig(t, loop.New(), false)
	const regions = 400
	whole, err := r.ranks[1].Arena().Alloc(8 * regions)
	require.NoError(t, err)
	region, err := r.ranks[1].Register(t.Context(), "whole", whole.Memory)
	require.NoError(t, err)
	for i := range regions {
		_, err := region.Part(fmt.Sprint("region ", i), 8*i, 8)
		require.NoError(t, err)
		whole.Bytes[8*i] = byte(i)
	}
	for i := range regions {
		found, err := r.ranks[0].Resolve(watched(t), 1, fmt.Sprint("region ", i))
		require.NoError(t, err)
		require.Equal(t, byte(i), found.Mem[0])
	}
	require.Positive(t, requests.Load())
	require.Less(t, requests.Load(), int64(regions))
}

// A peer sees a region that comes and goes whole or not at all.
func TestResolveRacesWithRegionsThatComeAndGo(t *testing.T) {
	r, _ := newListedRig(t, loop.New(), false)
	first, err := r.ranks[1].Arena().Alloc(8)
	require.NoError(t, err)
	second, err := r.ranks[1].Arena().Alloc(16)
	require.NoError(t, err)
	stop := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			mem := first.Memory
			if i%2 == 1 {
				mem = second.Memory
			}
			region, err := r.ranks[1].Register(context.Background(), "x", mem)
			if err == nil {
				err = region.Close()
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	for range 2000 {
		rep, listed := fabric.Listed(watched(t), r.ranks[0], 1, "x")
		if listed {
			require.Contains(t, []int{8, 16}, rep)
		}
	}
	close(stop)
	require.NoError(t, <-ended)
}
