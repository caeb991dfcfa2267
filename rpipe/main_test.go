package rpipe_test

import (
	"context"
	"maps"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
)

func TestMain(m *testing.M) {
	bodies := bodiesOfDeath()
	maps.Copy(bodies, bodiesOverWindows())
	maps.Copy(bodies, bodiesOfHeaps())
	maps.Copy(bodies, bodiesOfAggregates())
	bodies["beside the stopped"], bodies["beside the stopped, not connected"] = besideTheStopped(true), besideTheStopped(false)
	testjob.Main(m, bodies)
}

// used returns how much of this rank's heap is allocated.
func used(t *runtime.Team) int64 { return team.Of(t).Arena().Used() }

// ends opens a pipe from rank 0 to rank 1 and runs the rank's side of it; other
// ranks do nothing. Both sides close in the end.
func ends[T any](ctx context.Context, r *testjob.Rank, write func(w *rpipe.Writer[T]), read func(rd *rpipe.Reader[T]), opts ...rpipe.Option) {
	switch r.Me {
	case 0:
		w, err := rpipe.OpenWriter[T](ctx, r.World, 1, opts...)
		r.NoError(err)
		write(w)
		r.NoError(w.Close(ctx))
	case 1:
		rd, err := rpipe.OpenReader[T](ctx, r.World, 0, opts...)
		r.NoError(err)
		read(rd)
		r.NoError(rd.Close(ctx))
	}
}

// disturbed puts verbs/faulty between the fabric and the provider.
func disturbed(seed uint64) runtime.Option {
	plan := faulty.Plan{Seed: seed, DelayStarts: 0.3, Reorder: 0.5, PartialPosts: 0.3, QueueFull: 0.2}
	return runtime.WithWrap(func(p driver.Provider) driver.Provider { return faulty.New(p, plan) })
}
