package collectives

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/fabric"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
)

func TestRingsAreSmallerInLargerTeams(t *testing.T) {
	require.Equal(t, mostRing, ringFor(2))
	require.Equal(t, mostRing, ringFor(64))
	require.Equal(t, leastRing, ringFor(1<<20))
	for n := 1; n < 3000; n++ {
		require.Zero(t, ringFor(n)%leastRing)
		require.GreaterOrEqual(t, ringFor(n), ringFor(n+1))
	}
}

// callByHand runs f in a call, which sends and receives messages by the transport.
func callByHand(ctx context.Context, r *testjob.Rank, elem int, f func(ctx context.Context, p *transport) error) error {
	g, err := groupOf(r.World)
	r.NoError(err)
	g.messages().begin(team.Key{Seq: 1, Chain: 0xabc}, elem, false)
	return g.verdict(ctx, f(new(binding).to(ctx, g.team, team.Key{}), g.messages()))
}

// TestExchangesOfUnlikeLengthsDoNotDeadlock sends around a ring, where each
// member has another length, of several times what the ring holds.
func TestExchangesOfUnlikeLengthsDoNotDeadlock(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		length := func(rank int) int { return (rank % 3) * (2*mostRing + 3*rank) }
		src, dst := make([]byte, length(r.Me)), make([]byte, length(r.Left()))
		for i := range src {
			src[i] = byte(i ^ r.Me)
		}
		for range 3 {
			clear(dst)
			r.NoError(callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
				return p.Exchange(ctx, r.Right(), src, r.Left(), dst)
			}))
			for i := range dst {
				if dst[i] != byte(i^r.Left()) {
					r.Equal(byte(i^r.Left()), dst[i], "byte %d of %d", i, len(dst))
				}
			}
		}
	})
}

// TestSlotThatHoldsNoMessageReturnsErrCorrupt writes a slot that a correct sender never writes.
func TestSlotThatHoldsNoMessageReturnsErrCorrupt(t *testing.T) {
	const slots, number = 128, 120 // see the layout of an endpoint's memory
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		err := callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
			if r.Me == 0 {
				return p.Recv(ctx, 1, make([]byte, 8))
			}
			there, err := p.group.team.AwaitRegion(ctx, p.group.team.Members[0], p.channelName(1))
			if err != nil {
				return err
			}
			return there.PostFlag(ctx, fabric.Flag{Offset: slots + 128 + number, Value: 7})
		})
		if r.Me == 0 {
			r.ErrorIs(err, ErrCorrupt)
			r.ErrorContains(err, "from rank 1")
			return
		}
		r.NoError(err)
	})
}
