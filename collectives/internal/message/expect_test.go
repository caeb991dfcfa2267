package message_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// TestLinearRootsExpectAllMembersBeforeTheirFirstMessage: other members expect no messages but
// those of the root.
func TestLinearRootsExpectAllMembersBeforeTheirFirstMessage(t *testing.T) {
	const n, root = 4, 0
	checked := 0
	everyAlgorithm(t, func(t *testing.T, al *message.Algorithm) {
		switch al.Collective {
		case message.Broadcast, message.Reduce, message.AllReduce, message.Gather, message.Scatter:
		default:
			return
		}
		if al.Name != "linear" {
			return
		}
		checked++
		w := newNet(n, 0)
		w.finish(t, func(ctx context.Context, m *member) error {
			a := alikeArgs(al, n, n*16)
			a.Root = root
			return al.Run(ctx, m, a)
		})
		for rank, m := range w.members {
			if rank != root {
				require.Empty(t, m.expects, "member %d", rank)
				continue
			}
			require.NotEmpty(t, m.expects)
			require.Zero(t, m.expects[0], "calls of the root before")
		}
	})
	require.Equal(t, 5, checked)
}
