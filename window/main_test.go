package window_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/verbs/driver"
	"github.com/gopgas/gopgas/verbs/faulty"
	"github.com/gopgas/gopgas/window"
)

func TestMain(m *testing.M) {
	testjob.Main(m, map[string]testjob.Body{"descriptors": withoutDescriptors, "limit": limitIsRaised, "on hosts": onHosts, "shared array": shareWorld, "attach": churn, "lent": everyKindOnLent, "lent, no copies": withoutCopies,
		"lender dies": lenderDies, "updaters die": updatersDie, "lockers die": lockersDie, "locker dies": lockerDies})
}

// onHosts checks operations of each kind. Package faults runs it on real hosts.
func onHosts(ctx context.Context, r *testjob.Rank) {
	for _, body := range []testjob.Body{transferEveryType, signalBehindData, computeAtEveryWidth, contend, countUnderLock} {
		body(ctx, r)
		r.NoError(r.World.Barrier(ctx))
	}
}

// allocate makes a window of the world, of the program's memory under a context of [lending].
func allocate[T any](ctx context.Context, r *testjob.Rank, n int, opts ...window.Option) *window.Window[T] {
	if ctx.Value(lendKey{}) != nil {
		w, err := window.Create(ctx, r.World, make([]T, n), opts...)
		r.NoError(err)
		return w
	}
	w, err := window.Allocate[T](ctx, r.World, n, opts...)
	r.NoError(err)
	return w
}

// used returns how much of this rank's heap is allocated.
func used(t *runtime.Team) int64 { return team.Of(t).Arena().Used() }

// disturbed puts verbs/faulty between the fabric and the provider.
func disturbed(plan faulty.Plan) runtime.Option {
	return runtime.WithWrap(func(p driver.Provider) driver.Provider { return faulty.New(p, plan) })
}
