package collectives_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
)

// BenchmarkAlone makes calls of one element in a team of one. It measures the cost of a
// call beside the work: checking, numbering, choosing a way.
func BenchmarkAlone(b *testing.B) {
	in, out := make([]float64, 1), make([]float64, 1)
	sum := collectives.Sum[float64]()
	for name, call := range map[string]func(ctx context.Context, r *testjob.Rank) error{
		"Barrier":   func(ctx context.Context, r *testjob.Rank) error { return collectives.Barrier(ctx, r.World) },
		"Broadcast": func(ctx context.Context, r *testjob.Rank) error { return collectives.Broadcast(ctx, r.World, 0, in) },
		"Gather":    func(ctx context.Context, r *testjob.Rank) error { return collectives.Gather(ctx, r.World, 0, in, out) },
		"AllReduce": func(ctx context.Context, r *testjob.Rank) error {
			return collectives.AllReduce(ctx, r.World, sum, in, out)
		},
		"Broadcast and AllReduce": func(ctx context.Context, r *testjob.Rank) error {
			if err := collectives.Broadcast(ctx, r.World, 0, in); err != nil {
				return err
			}
			return collectives.AllReduce(ctx, r.World, sum, in, out)
		},
	} {
		b.Run(name, func(b *testing.B) {
			testjob.Config{Provider: "loop", Ranks: 1}.Run(b, func(ctx context.Context, r *testjob.Rank) {
				b.ReportAllocs()
				for b.Loop() {
					if err := call(ctx, r); err != nil {
						r.NoError(err)
					}
				}
			})
		})
	}
}
