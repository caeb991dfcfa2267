package message_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// alikeArgs returns the arguments of a member's call with blocks of one length or
// a vector of int64. The longest buffer has m bytes.
func alikeArgs(al *message.Algorithm, n, m int) *message.Args {
	sum, arena := operators()[0], &message.Arena{}
	a := &message.Args{
		Elem: sum.elem, Send: make([]byte, m), Recv: make([]byte, m),
		Combine: sum.combine, Commutative: true, Scratch: arena.Take,
	}
	switch al.Collective {
	case message.Gather, message.AllGather:
		a.Send = a.Send[:m/n]
	case message.Scatter, message.ReduceScatter:
		a.Recv = a.Recv[:m/n]
	}
	return a
}

// costOf returns the cost of a call.
func costOf(t *testing.T, al *message.Algorithm, n, m int, change func(a *message.Args)) message.Cost {
	w := newNet(n, 4)
	w.finish(t, func(ctx context.Context, c *member) error {
		a := alikeArgs(al, n, m)
		change(a)
		return al.Run(ctx, c, a)
	})
	return w.cost()
}

func TestCallsTakeTheRoundsAndBytesOfTheirHeaders(t *testing.T) {
	const block, segment = 128, 24
	everyAlgorithm(t, func(t *testing.T, al *message.Algorithm) {
		if al.Cost == nil {
			t.Skip("it is made of others")
		}
		for n := 1; n <= 16; n++ {
			if al.Needs&message.EvenSize != 0 && n%2 != 0 {
				continue
			}
			m := n * block
			claimed := al.Cost(n, m, segment)
			counted := costOf(t, al, n, m, func(a *message.Args) { a.Segment = segment })
			what := fmt.Sprintf("%d members", n)
			require.Equal(t, claimed.Rounds, counted.Rounds, what)
			require.Equal(t, claimed.Bytes, counted.Bytes, what)
		}
	})
}

func TestTreeOfAnotherRootTakesOneMoreRoundAtMost(t *testing.T) {
	for _, c := range []message.Collective{message.Gather, message.Scatter} {
		al, ok := message.Find(c, "binomial")
		require.True(t, ok)
		for n := 2; n <= 16; n++ {
			for root := range n {
				claimed := al.Cost(n, n*128, 0)
				counted := costOf(t, &al, n, n*128, func(a *message.Args) { a.Root = root })
				require.LessOrEqual(t, counted.Rounds, claimed.Rounds+1, "%s, %d members, root %d", c, n, root)
				require.Equal(t, claimed.Bytes, counted.Bytes, "%s, %d members, root %d", c, n, root)
			}
		}
	}
}

func TestOrderedReduceToAnotherRootTakesOneMoreMessage(t *testing.T) {
	al, ok := message.Find(message.Reduce, "binomial")
	require.True(t, ok)
	for n := 2; n <= 16; n++ {
		claimed := al.Cost(n, 128, 0)
		counted := costOf(t, &al, n, 128, func(a *message.Args) { a.Root, a.Commutative = n-1, false })
		require.Equal(t, message.Cost{Rounds: claimed.Rounds + 1, Bytes: claimed.Bytes + 128}, counted, "%d members", n)
	}
}
