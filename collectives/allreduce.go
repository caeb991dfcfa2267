package collectives

import (
	"context"

	"github.com/gopgas/gopgas/runtime"
)

// AllReduce combines all members' vectors, element by element, and gives the
// result to all members: out[i] = in0[i] ∘ in1[i] ∘ ... All vectors have one length.
// in and out may be the same slice. Kind: collective; returns when out is complete,
// and in may be changed.
func AllReduce[T any](ctx context.Context, t *runtime.Team, op Op[T], in, out []T, opts ...Option) error {
	var c Call
	fill(&c, allReduce, 0, len(in), in, out, opts)
	by(&c, &op)
	return run(ctx, t, &c)
}

// AllReduceCall returns the call of [AllReduce]. Kind: local.
func AllReduceCall[T any](op Op[T], in, out []T, opts ...Option) (c Call) {
	fill(&c, allReduce, 0, len(in), in, out, opts)
	by(&c, &op)
	return c
}
