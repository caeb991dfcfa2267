package collectives

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
)

func TestManyMembersHaveSmallPipes(t *testing.T) {
	require.Equal(t, mostHeap, heapFor(2))
	require.Equal(t, mostHeap, heapFor(64))
	require.Equal(t, leastHeap, heapFor(1<<20))
	for n := 1; n < 3000; n++ {
		require.Zero(t, heapFor(n)%leastHeap)
		require.GreaterOrEqual(t, heapFor(n), heapFor(n+1))
	}
}

// callByHand runs f in a call, which sends and receives messages by the transport.
func callByHand(ctx context.Context, r *testjob.Rank, elem int, f func(ctx context.Context, p *transport) error) error {
	g, err := groupOf(r.World)
	r.NoError(err)
	g.transport.begin(team.Key{Seq: 1, Chain: 0xabc}, elem, false)
	return g.verdict(ctx, f(g.bound.to(ctx, g.team), g.transport))
}

// TestExchangesOfUnlikeLengthsNeverWaitInACircle sends around a ring, where each
// member has another length, many times what a pipe's heap holds.
func TestExchangesOfUnlikeLengthsNeverWaitInACircle(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		length := func(rank int) int { return (rank % 3) * (mostHeap + 3*rank) }
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

// TestBlocksThatAreNoMessagesAreRefused writes blocks to a pipe that are not messages.
func TestBlocksThatAreNoMessagesAreRefused(t *testing.T) {
	for name, write := range map[string]func(ctx context.Context, p *transport, out *rpipe.Writer[byte]) error{
		"short": func(ctx context.Context, _ *transport, out *rpipe.Writer[byte]) error {
			return out.Send(ctx, []byte{1, 2, 3})
		},
		"of another length than it says": func(ctx context.Context, p *transport, out *rpipe.Writer[byte]) error {
			b, err := out.Alloc(ctx, headerSize+p.eagerMost()+7)
			if err == nil {
				clear(b.Mem())
				p.header(b.Mem(), &transfer{bytes: p.eagerMost() + 8, turn: 1})
				err = out.Write(ctx, b)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
				err := callByHand(ctx, r, 1, func(ctx context.Context, p *transport) error {
					if r.Me == 0 {
						return p.Recv(ctx, 1, make([]byte, p.eagerMost()+8))
					}
					r.NoError(p.open(ctx, 0))
					return write(ctx, p, p.partners[0].out)
				})
				if r.Me == 0 {
					r.ErrorIs(err, rpipe.ErrCorrupt)
					return
				}
				r.NoError(err)
			})
		})
	}
}
