package collectives_test

import (
	"context"
	"slices"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
)

// A listed context is of a type whose values cannot be compared.
type listed struct {
	context.Context
	_ []int
}

// An embedding context is of a type whose values can be compared, unless the embedded
// context cannot.
type embedding struct{ context.Context }

// TestCallsTakeContextsThatCannotBeCompared makes calls on one level and on two, by messages
// and on boards, each twice.
func TestCallsTakeContextsThatCannotBeCompared(t *testing.T) {
	configs := append(testjob.Apart(), testjob.Config{Provider: "shm", Ranks: 4}, testjob.Config{Provider: "tcp", Ranks: 4})
	for _, c := range configs {
		t.Run(c.String(), func(t *testing.T) {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				list := listed{Context: ctx}
				for _, ctx := range []context.Context{list, list, embedding{list}, embedding{list}} {
					for _, n := range []int{1, 20_000} {
						x := slices.Repeat([]int64{1}, n)
						r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), x, x))
						r.EqualValues(r.N, x[n-1])
						r.NoError(collectives.Broadcast(ctx, r.World, r.N-1, x))
					}
				}
			})
		})
	}
}
