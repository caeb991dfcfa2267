package fabric_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
)

// Parts are found by their own names, and are the whole's memory.
func TestPartSharesTheMemoryOfItsRegion(t *testing.T) {
	for name, plan := range map[string]faulty.Plan{"mapped": {}, "queued": {HideMapper: true},
		"requests": {HideMapper: true, HideExtendedAtomics: true, HideCoherentAtomics: true}} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2, 0, plan)
			block, err := r.ranks[1].Arena().Alloc(4096)
			require.NoError(t, err)
			whole, err := r.ranks[1].Register(t.Context(), "whole", block.Memory)
			require.NoError(t, err)
			part, err := whole.Part("part", 1024, 128)
			require.NoError(t, err)
			inner, err := part.Part("inner", 64, 64)
			require.NoError(t, err)
			_, err = whole.Part("part", 0, 8)
			require.ErrorIs(t, err, driver.ErrInvalid)

			remote, err := r.ranks[0].Resolve(watched(t), 1, "part")
			require.NoError(t, err)
			require.Equal(t, 128, remote.Len)
			require.NoError(t, remote.Put(watched(t), told(8, []byte("deep"), fabric.Flag{Offset: 16, Add: true, Value: 3})))
			far, err := r.ranks[0].Resolve(watched(t), 1, "inner")
			require.NoError(t, err)
			require.NoError(t, far.PostFlag(watched(t), fabric.Flag{Offset: 8, Add: true, Value: 9}))
			require.NoError(t, far.Peer.Flush(watched(t)))
			require.Equal(t, "deep", string(block.Bytes[1032:1036]))
			require.EqualValues(t, 3, block.Bytes[1040])
			require.EqualValues(t, 9, inner.Bytes()[8])
			require.EqualValues(t, 9, block.Bytes[1096])

			require.NoError(t, inner.Close())
			require.NoError(t, part.Close())
			_, err = r.ranks[0].Resolve(watched(t), 1, "part")
			require.Error(t, err, "the name is gone")
			require.NoError(t, remote.PostFlag(watched(t), fabric.Flag{Offset: 0, Value: 5}))
			require.NoError(t, far.Peer.Flush(watched(t)))
			require.EqualValues(t, 5, block.Bytes[1024], "the key lives on with the whole")
			require.NoError(t, whole.Close())
		})
	}
}
