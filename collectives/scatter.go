package collectives

import (
	"context"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// Scatter gives each member its block of the root's, in the order of ranks. All
// blocks have one length. in holds all of them, and only the root
// uses it. At the root, out may be its own block of in. Kind: collective; returns when this member's part is done.
func Scatter[T any](ctx context.Context, t *runtime.Team, root int, in, out []T, opts ...Option) error {
	var c Call
	fill(&c, scatter, root, len(out), in, out, opts)
	return run(ctx, t, &c)
}

// ScatterCall returns the call of [Scatter]. Kind: local.
func ScatterCall[T any](root int, in, out []T, opts ...Option) (c Call) {
	fill(&c, scatter, root, len(out), in, out, opts)
	return c
}

// ScatterV is [Scatter] with blocks of different lengths. The root says where they lie; the call
// ignores the Blocks of other members. Kind: collective; completes as that call does.
func ScatterV[T any](ctx context.Context, t *runtime.Team, root int, in []T, blocks Blocks, out []T, opts ...Option) error {
	c := ScatterVCall(root, in, blocks, out, opts...)
	return run(ctx, t, &c)
}

// ScatterVCall returns the call of [ScatterV]. Kind: local.
func ScatterVCall[T any](root int, in []T, blocks Blocks, out []T, opts ...Option) Call {
	var c Call
	fill(&c, scatterV, root, team.Varied, in, out, opts)
	c.sendBlocks = blocks
	return c
}
