package testjob

import (
	"context"
	"math"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/runtime"
)

// A Rank is the job of one rank of a test. A failed assertion ends it.
type Rank struct {
	*require.Assertions
	Job   *runtime.Job
	World *runtime.Team
	Me, N int // this rank, and the number of ranks
	die   func()
}

// Right returns the next rank, Left the one before.
func (r *Rank) Right() int { return (r.Me + 1) % r.N }

// Left returns the rank before this one.
func (r *Rank) Left() int { return (r.Me + r.N - 1) % r.N }

// Die ends this rank without a word: a process by SIGKILL, a goroutine by Goexit.
// Call it in the goroutine of the body.
func (r *Rank) Die() { r.die() }

// Allocs returns the allocations of a collective call by all ranks of this process together,
// the least of four averages over rounds calls. Ranks that wait for long on a busy machine
// park, which allocates. All ranks call it, and ranks but rank 0 get 0.
func (r *Rank) Allocs(rounds int, call func()) float64 {
	least := math.Inf(1)
	for range 4 {
		if r.Me == 0 {
			least = min(least, testing.AllocsPerRun(rounds, call))
			continue
		}
		least = 0
		for range rounds + 1 { // AllocsPerRun makes one call ahead
			call()
		}
	}
	return least
}

// A Body is the program of a rank of a test.
type Body func(ctx context.Context, r *Rank)

// Run runs body at every rank and fails the test unless all of them return and
// their jobs close without error.
func (c Config) Run(t testing.TB, body Body, opts ...runtime.Option) {
	t.Helper()
	require.NoError(t, c.Try(t, body, opts...))
}

// Try is Run for jobs that do not end well.
func (c Config) Try(t testing.TB, body Body, opts ...runtime.Option) error {
	t.Helper()
	return RunLocal(t.Context(), c.Ranks, func(ctx context.Context, job *runtime.Job) error {
		mutant.Hesitate(mutant.Call)
		body(ctx, newRank(t, job))
		return nil
	}, append(c.Options(), opts...)...)
}

// All runs body on the matrix of configurations with atLeast ranks or more.
func All(t *testing.T, atLeast int, body Body, opts ...runtime.Option) {
	t.Helper()
	Each(t, atLeast, func(t *testing.T, c Config) { c.Run(t, body, opts...) })
}

// plain hides Helper, which walks the stack at each assertion. Ranks assert often, and a failed
// assertion shows its own trace.
type plain struct{ require.TestingT }

// newRank returns a rank of the job for a test body.
func newRank(t require.TestingT, job *runtime.Job) *Rank {
	world := job.World()
	return &Rank{Assertions: require.New(plain{t}), Job: job, World: world, Me: world.Rank(), N: world.Size(),
		die: goruntime.Goexit}
}
