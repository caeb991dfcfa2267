package runtime_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
)

// TestRefusedFlagEndsTheCallAtAllMembers has a member set its flags in memory that others have closed. So they refuse
// the flags, but only once these are posted. Down a tree and between two hosts that member waits for no flag behind
// them: it learns of the refusal by its flush in Free.
func TestRefusedFlagEndsTheCallAtAllMembers(t *testing.T) {
	barrier, free := (*runtime.Team).Barrier, (*runtime.Team).Free
	calls := map[string]func(*runtime.Team, context.Context) error{"barrier": barrier, "free": free}
	for name, c := range map[string]struct {
		refused  int // the member whose flags are
		freeOnly bool
		opts     []runtime.Option
	}{
		"up a tree":         {1, false, []runtime.Option{runtime.WithCores(1)}},
		"down a tree":       {0, true, []runtime.Option{runtime.WithCores(1)}},
		"dissemination":     {1, false, []runtime.Option{runtime.WithCores(100)}},
		"between two hosts": {2, true, []runtime.Option{runtime.WithHosts("a", "a", "b")}},
	} {
		for of, call := range calls {
			if c.freeOnly && of != "free" {
				continue
			}
			t.Run(name+"/"+of, func(t *testing.T) {
				provider := "tcp"
				if c.refused == 2 {
					provider = "loop,tcp"
				}
				var ended atomic.Int64
				// Ranks do not close their job in peace where a connection has broken.
				_ = testjob.Config{Provider: provider, Ranks: 3}.Try(t, func(ctx context.Context, r *testjob.Rank) {
					half, err := r.World.Split(ctx, 0, 0)
					r.NoError(err)
					r.NoError(half.Barrier(ctx))
					misdirect(ctx, r, half, c.refused)
					err = call(half, ctx)
					if r.Me == c.refused {
						r.ErrorContains(err, driver.RemoteAccess.String())
					} else {
						r.ErrorIs(err, runtime.ErrTeamBroken)
					}
					ended.Add(1)
					poll(ctx, func() bool { return int(ended.Load()) == r.N }) // a rank that leaves may not tell others
				}, c.opts...)
			})
		}
	}
}

// misdirect has one member's flags go to memory that its owners have closed by then.
func misdirect(ctx context.Context, r *testjob.Rank, half *runtime.Team, member int) {
	inner := team.Of(r.World)
	block, err := inner.Arena().Alloc(team.RoomSize)
	r.NoError(err)
	region, err := inner.Register(ctx, "closed", block.Memory)
	r.NoError(err)
	r.NoError(r.World.Barrier(ctx))
	if r.Me == member {
		r.NoError(runtime.Misdirect(ctx, half, "closed"))
	}
	r.NoError(r.World.Barrier(ctx))
	r.NoError(inner.GiveBack(region, block))
	r.NoError(r.World.Barrier(ctx))
}
