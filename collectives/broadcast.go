package collectives

import (
	"context"

	"github.com/gopgas/gopgas/runtime"
)

// Broadcast gives the root's data to all members. data has one length at all members.
// The call reads it at the root, and writes it elsewhere. Kind: collective; returns when
// this member's part is done: the root need not wait for a member.
func Broadcast[T any](ctx context.Context, t *runtime.Team, root int, data []T, opts ...Option) error {
	var c Call
	fill(&c, broadcast, root, len(data), nil, data, opts)
	return run(ctx, t, &c)
}

// BroadcastCall returns the call of [Broadcast]. Kind: local.
func BroadcastCall[T any](root int, data []T, opts ...Option) (c Call) {
	fill(&c, broadcast, root, len(data), nil, data, opts)
	return c
}

// Barrier returns when all members have called it. It completes no operations:
// it is [runtime.Team.Barrier]. Kind: collective.
func Barrier(ctx context.Context, t *runtime.Team) error { return t.Barrier(ctx) }
