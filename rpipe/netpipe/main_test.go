package netpipe_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestMain(m *testing.M) { testjob.Main(m, bodiesOfConns()) }

// used returns how much of this rank's heap is allocated.
func used(t *runtime.Team) int64 { return team.Of(t).Arena().Used() }

// leave waits until all ranks are here, or one of them is dead.
func leave(ctx context.Context, r *testjob.Rank) {
	if err := r.World.Barrier(ctx); err != nil {
		r.ErrorIs(err, runtime.ErrRankDead)
	}
}
