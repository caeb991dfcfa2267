package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/verbs/faulty"
)

func TestRegionOfReturnsAPlaceThatPeersReach(t *testing.T) {
	r := newRig(t, 2, -1, faulty.Plan{})
	owner, other := r.ranks[1], r.ranks[0]
	r.region(t, 1, 256, "small")
	mem := r.region(t, 1, 4096, "large")
	id, offset, ok := owner.RegionOf(mem[100:200])
	require.True(t, ok)
	require.Equal(t, 100, offset)
	require.Nil(t, other.Reached(1, id), "no rank has requested it yet")
	remote, err := other.Reach(watched(t), 1, id)
	require.NoError(t, err)
	require.Len(t, remote.Mem, 4096)
	remote.Mem[offset] = 42
	require.EqualValues(t, 42, mem[100])
	require.Same(t, remote, other.Reached(1, id))
	mine, err := owner.Reach(watched(t), 1, id)
	require.NoError(t, err)
	require.Same(t, &mem[0], &mine.Mem[0], "a rank's own is the memory itself")
}

func TestRegionOfFindsNoRegionForOtherMemory(t *testing.T) {
	r := newRig(t, 1, -1, faulty.Plan{})
	f := r.ranks[0]
	before, err := f.Arena().Alloc(64)
	require.NoError(t, err)
	block, err := f.Arena().Alloc(192)
	require.NoError(t, err)
	part := block.Memory
	part.Bytes = part.Bytes[64:128]
	_, err = f.Register(watched(t), "part of the block", part)
	require.NoError(t, err)
	for name, mem := range map[string][]byte{"none": nil, "empty": block.Bytes[:0], "before": before.Bytes,
		"elsewhere": make([]byte, 64), "ahead": block.Bytes[:64], "behind": block.Bytes[128:], "beyond the end": block.Bytes[100:129],
		"from ahead": block.Bytes[63:100], "inside": block.Bytes[64:128]} {
		_, _, ok := f.RegionOf(mem)
		require.Equal(t, name == "inside", ok, name)
	}
}

func TestRegionIDIsNeverUsedAgain(t *testing.T) {
	r := newRig(t, 2, -1, faulty.Plan{})
	seen := map[uint64]bool{}
	for range 20 {
		block, err := r.ranks[1].Arena().Alloc(64)
		require.NoError(t, err)
		region, err := r.ranks[1].Register(watched(t), "again", block.Memory)
		require.NoError(t, err)
		id, _, ok := r.ranks[1].RegionOf(block.Bytes)
		require.True(t, ok)
		require.Equal(t, region.ID(), id)
		require.False(t, seen[id])
		seen[id] = true
		require.NoError(t, region.Close())
		_, _, ok = r.ranks[1].RegionOf(block.Bytes)
		require.False(t, ok, "a region that is closed has no place")
		_, err = r.ranks[0].Reach(watched(t), 1, id)
		require.Error(t, err)
		require.NoError(t, r.ranks[1].Arena().Free(block))
	}
}

func TestRegionOfAllocatesNothing(t *testing.T) {
	r := newRig(t, 1, -1, faulty.Plan{})
	mem := r.region(t, 0, 4096, "x")
	require.Zero(t, testing.AllocsPerRun(100, func() { _, _, _ = r.ranks[0].RegionOf(mem[64:128]) }))
}
