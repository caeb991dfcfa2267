package collectives

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/channel"
	"github.com/gopgas/gopgas/internal/testjob"
)

// TestReceiverWithoutMemoryForAMessageReturnsTheShortage has no memory for messages that do not fit in
// slots.
func TestReceiverWithoutMemoryForAMessageReturnsTheShortage(t *testing.T) {
	onTCP(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
		g, err := groupOf(r.World)
		r.NoError(err)
		if r.Me == 1 {
			name := g.messages().channelName(0)
			block, err := g.team.Arena().AllocOnDemand(channel.Size(g.messages().ring), channel.FirstSize)
			r.NoError(err)
			block.Demand.Commit = func(int) error { return arena.ErrExhausted }
			g.messages().places[0], err = g.registerFor(ctx, 0, name, block)
			r.NoError(err)
		}
		in, out := make([]int64, 2*channel.MostInSlot/8), make([]int64, 2*channel.MostInSlot/8)
		err = AllReduce(ctx, r.World, Sum[int64](), in, out)
		if r.Me == 1 {
			r.ErrorIs(err, arena.ErrExhausted)
		} else if err == nil {
			r.Error(r.World.Barrier(ctx), "the other member's call failed")
		}
	})
}
