package collectives

import (
	"context"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/runtime"
)

// AllToAll gives each member a block from each: block i of in goes to rank i,
// block j of out comes from rank j. All blocks have one length; in and out are apart.
// Kind: collective; returns when out is complete, and in may be changed.
func AllToAll[T any](ctx context.Context, t *runtime.Team, in, out []T, opts ...Option) error {
	var c Call
	fill(&c, allToAll, 0, len(in), in, out, opts)
	return run(ctx, t, &c)
}

// AllToAllCall returns the call of [AllToAll]. Kind: local.
func AllToAllCall[T any](in, out []T, opts ...Option) (c Call) {
	fill(&c, allToAll, 0, len(in), in, out, opts)
	return c
}

// AllToAllV is [AllToAll] with blocks of different lengths, each member's own. A block has the
// length that its receiver expects. Kind: collective; completes as that call does.
func AllToAllV[T any](ctx context.Context, t *runtime.Team, in []T, to Blocks, out []T, from Blocks, opts ...Option) error {
	c := AllToAllVCall(in, to, out, from, opts...)
	return run(ctx, t, &c)
}

// AllToAllVCall returns the call of [AllToAllV]. Kind: local.
func AllToAllVCall[T any](in []T, to Blocks, out []T, from Blocks, opts ...Option) Call {
	var c Call
	fill(&c, allToAllV, 0, team.Varied, in, out, opts)
	c.sendBlocks, c.recvBlocks = to, from
	return c
}
