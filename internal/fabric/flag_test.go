package fabric_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/verbs/faulty"
)

// Who cannot wait learns whether the flag is on its way: data that a post can copy
// is, whatever the switch point, and larger data is not.
func TestAWriteFlagThatMustNotWaitIsPostedWholeOrNotAtAll(t *testing.T) {
	const size = 512 << 10
	for name, plan := range map[string]faulty.Plan{
		"inline": {HideMapper: true},
		"slow":   {HideMapper: true, DelayStarts: 1},
		"staged": {HideMapper: true, NeedLocalKeys: true, MaxInline: 64, HideExtendedAtomics: true, HideCanceler: true},
	} {
		t.Run(name, func(t *testing.T) {
			remote, mem := pair(t, size, 1, plan)
			over, cancel := context.WithCancel(watched(t))
			cancel()
			src := make([]byte, 30_000)
			src[len(src)-1] = 7
			require.NoError(t, remote.WriteFlag(over, 8, src, fabric.Flag{Value: 3}))
			clear(src) // it is free
			require.NoError(t, remote.Peer.Flush(watched(t)))
			require.EqualValues(t, 3, mem[0])
			require.EqualValues(t, 7, mem[8+len(src)-1])

			err := remote.WriteFlag(over, 8, make([]byte, size/2), fabric.Flag{Value: 4})
			require.ErrorIs(t, err, context.Canceled)
			require.NoError(t, remote.Peer.Flush(watched(t)))
			require.EqualValues(t, 3, mem[0])
			require.EqualValues(t, 7, mem[8+len(src)-1])
		})
	}
}
