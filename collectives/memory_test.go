package collectives

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/arena"
	"github.com/gopgas/gopgas/internal/channel"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
)

// lacking are extents for which there was no memory.
type lacking struct{ team.Extents }

func (lacking) Shortage() error { return arena.ErrExhausted }

// TestReceiverWithoutMemoryForAMessageReturnsTheShortage of its extents, or of a region of its own. It waits for a
// message that does not come.
func TestReceiverWithoutMemoryForAMessageReturnsTheShortage(t *testing.T) {
	for _, extents := range []bool{true, false} {
		onTCP(2).Run(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 1 {
				g, err := groupOf(r.World)
				r.NoError(err)
				r.NotNil(g.team.Extents)
				if extents {
					g.team.Extents = lacking{g.team.Extents}
				} else {
					g.team.Extents = nil
					lacks := g.shortage.Watch(func(int) error { return arena.ErrExhausted })
					r.ErrorIs(lacks(1), arena.ErrExhausted)
				}
				r.ErrorIs(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
					return p.Recv(ctx, 0, make([]byte, 1))
				}), arena.ErrExhausted)
			}
			r.NoError(r.World.Barrier(ctx))
		})
	}
}

// TestExtentsHoldChannels of teams that have them.
func TestExtentsHoldChannels(t *testing.T) {
	require.Equal(t, team.ExtentSize, channel.Size(ringFor(team.MostExtents)))
	require.Equal(t, team.ExtentFirst, channel.FirstSize)
}
