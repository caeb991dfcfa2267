package collectives

import (
	"context"

	"github.com/gopgas/gopgas/runtime"
)

// Reduce combines all members' vectors, element by element, and gives the result
// to the root. All vectors have one length. Only the root uses out, where it may be
// in. Kind: collective; returns when this member's part is done, and in may
// be changed.
func Reduce[T any](ctx context.Context, t *runtime.Team, root int, op Op[T], in, out []T, opts ...Option) error {
	var c Call
	fill(&c, reduce, root, len(in), in, out, opts)
	by(&c, &op)
	return run(ctx, t, &c)
}

// ReduceCall returns the call of [Reduce]. Kind: local.
func ReduceCall[T any](root int, op Op[T], in, out []T, opts ...Option) (c Call) {
	fill(&c, reduce, root, len(in), in, out, opts)
	by(&c, &op)
	return c
}

// ReduceScatter combines all members' vectors of one block for each member, and gives each member
// its block of the result. The length of in is that of all members' out together. The slice out may
// be this member's own block of in. Kind: collective; returns when out is complete, and in may be
// changed.
func ReduceScatter[T any](ctx context.Context, t *runtime.Team, op Op[T], in, out []T, opts ...Option) error {
	var c Call
	fill(&c, reduceScatter, 0, len(out), in, out, opts)
	by(&c, &op)
	return run(ctx, t, &c)
}

// ReduceScatterCall returns the call of [ReduceScatter]. Kind: local.
func ReduceScatterCall[T any](op Op[T], in, out []T, opts ...Option) (c Call) {
	fill(&c, reduceScatter, 0, len(out), in, out, opts)
	by(&c, &op)
	return c
}

// ReduceScatterV is [ReduceScatter] with blocks of different lengths, which are the same at all
// members. Kind: collective; completes as that call does.
func ReduceScatterV[T any](ctx context.Context, t *runtime.Team, op Op[T], in []T, blocks Blocks, out []T, opts ...Option) error {
	c := ReduceScatterVCall(op, in, blocks, out, opts...)
	return run(ctx, t, &c)
}

// ReduceScatterVCall returns the call of [ReduceScatterV]. Kind: local.
func ReduceScatterVCall[T any](op Op[T], in []T, blocks Blocks, out []T, opts ...Option) Call {
	var c Call
	fill(&c, reduceScatterV, 0, blocks.total(), in, out, opts)
	by(&c, &op)
	c.sendBlocks = blocks
	return c
}
