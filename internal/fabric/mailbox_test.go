package fabric_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
)

// crowded holds devices over which the target's CPU applies atomics. As a rule, or now and
// then, their queues have no room for the responses.
var crowded = map[string]faulty.Plan{
	"shallow":     {HideCoherentAtomics: true, HideExtendedAtomics: true, MaxDepth: 8},
	"of one":      {HideCoherentAtomics: true, HideExtendedAtomics: true, MaxDepth: 1},
	"refusing":    {HideCoherentAtomics: true, HideExtendedAtomics: true, QueueFull: 0.5},
	"slow to end": {HideCoherentAtomics: true, HideExtendedAtomics: true, MaxDepth: 8, DelayCompletions: 0.5},
}

func TestResponsesThatWaitForRoomKeepTheirOrder(t *testing.T) {
	for name, plan := range crowded {
		t.Run(name, func(t *testing.T) {
			remote, mem := pair(t, 8, 0, plan)
			ctx, add := watched(t), fabric.Atomic{Op: driver.AtomicAdd, Width: 8, Operand: 1}
			for range 500 {
				require.NoError(t, remote.Update(ctx, 0, add))
			}
			for i := range uint64(20) {
				old, err := remote.Fetch(ctx, 0, add)
				require.NoError(t, err)
				require.Equal(t, 500+i, old)
			}
			require.NoError(t, remote.Peer.Flush(ctx))
			require.Equal(t, []byte{520 & 0xff, 520 >> 8, 0, 0, 0, 0, 0, 0}, mem)
		})
	}
}

func TestRanksWithFullQueuesRespondToEachOther(t *testing.T) {
	for name, plan := range crowded {
		t.Run(name, func(t *testing.T) {
			r, adds := newRig(t, 2, 0, plan), testwatch.Rounds(250)
			mems := [2][]byte{r.region(t, 0, 8, "x"), r.region(t, 1, 8, "x")}
			ctx := watched(t)
			var all errgroup.Group
			for me := range 2 {
				remote, err := r.ranks[me].Resolve(ctx, 1-me, "x")
				require.NoError(t, err)
				for range 4 {
					all.Go(func() error {
						for range adds {
							if err := remote.Update(ctx, 0, fabric.Atomic{Op: driver.AtomicAdd, Width: 8, Operand: 1}); err != nil {
								return err
							}
						}
						return remote.Peer.Flush(ctx)
					})
				}
			}
			require.NoError(t, all.Wait())
			for _, mem := range mems {
				require.EqualValues(t, 4*adds, binary.NativeEndian.Uint64(mem))
			}
		})
	}
}
