package message_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gopgas/gopgas/collectives/internal/message"
)

// everyAlgorithm runs f for each algorithm of members that need no graph.
func everyAlgorithm(t *testing.T, f func(t *testing.T, al *message.Algorithm)) {
	for c := message.Broadcast; c <= message.ExScan; c++ {
		algorithms := message.Algorithms(c)
		require.NotEmpty(t, algorithms)
		for _, al := range algorithms {
			t.Run(c.String()+"/"+al.Name, func(t *testing.T) { f(t, &al) })
		}
	}
}

func TestAlgorithmsAgreeWithASequentialModel(t *testing.T) {
	everyAlgorithm(t, func(t *testing.T, al *message.Algorithm) {
		t.Parallel()
		rapid.Check(t, func(t *rapid.T) {
			p := drawProblem(t, al)
			w := newNet(p.n, rapid.IntRange(0, 2).Draw(t, "room"))
			w.finish(t, p.run)
			p.check(t)
		})
	})
}
