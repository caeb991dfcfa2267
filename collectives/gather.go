package collectives

import (
	"context"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// Gather brings all members' blocks to the root, in the order of ranks. All blocks
// have one length. Only the root uses out, which takes all blocks. The root's in may be its
// own block of out. Kind: collective; returns when this member's part is done, and in may
// be changed.
func Gather[T any](ctx context.Context, t *runtime.Team, root int, in, out []T, opts ...Option) error {
	var c Call
	fill(&c, gather, root, len(in), in, out, opts)
	return run(ctx, t, &c)
}

// GatherCall returns the call of [Gather]. Kind: local.
func GatherCall[T any](root int, in, out []T, opts ...Option) (c Call) {
	fill(&c, gather, root, len(in), in, out, opts)
	return c
}

// GatherV is [Gather] with blocks of different lengths. The root's blocks give their places in
// out. The call ignores the blocks argument of other members. Kind: collective; completes as
// that call does.
func GatherV[T any](ctx context.Context, t *runtime.Team, root int, in, out []T, blocks Blocks, opts ...Option) error {
	c := GatherVCall(root, in, out, blocks, opts...)
	return run(ctx, t, &c)
}

// GatherVCall returns the call of [GatherV]. Kind: local.
func GatherVCall[T any](root int, in, out []T, blocks Blocks, opts ...Option) Call {
	var c Call
	fill(&c, gatherV, root, team.Varied, in, out, opts)
	c.recvBlocks = blocks
	return c
}

// AllGather brings all members' blocks to all members, in the order of ranks. All
// blocks have one length. out takes all of them. in may be this member's own block of out.
// Kind: collective; returns when out is complete, and in may be changed.
func AllGather[T any](ctx context.Context, t *runtime.Team, in, out []T, opts ...Option) error {
	var c Call
	fill(&c, allGather, 0, len(in), in, out, opts)
	return run(ctx, t, &c)
}

// AllGatherCall returns the call of [AllGather]. Kind: local.
func AllGatherCall[T any](in, out []T, opts ...Option) (c Call) {
	fill(&c, allGather, 0, len(in), in, out, opts)
	return c
}

// AllGatherV is [AllGather] with blocks of different lengths, which are the same at all members.
// Kind: collective; completes as that call does.
func AllGatherV[T any](ctx context.Context, t *runtime.Team, in, out []T, blocks Blocks, opts ...Option) error {
	c := AllGatherVCall(in, out, blocks, opts...)
	return run(ctx, t, &c)
}

// AllGatherVCall returns the call of [AllGatherV]. Kind: local.
func AllGatherVCall[T any](in, out []T, blocks Blocks, opts ...Option) Call {
	var c Call
	fill(&c, allGatherV, 0, blocks.total(), in, out, opts)
	c.recvBlocks = blocks
	return c
}
