package collectives_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// mixed makes one of the collectives, by number, on vectors of about n elements.
func mixed(ctx context.Context, t *runtime.Team, i, n int) error {
	sum, size := collectives.Sum[int64](), t.Size()
	one, all, out := make([]int64, n), make([]int64, n*size), make([]int64, n*size)
	root := i % size
	switch i % 10 {
	case 0:
		return collectives.AllReduce(ctx, t, sum, one, one)
	case 1:
		return collectives.Broadcast(ctx, t, root, one)
	case 2:
		return collectives.Reduce(ctx, t, root, sum, one, one)
	case 3:
		return collectives.Gather(ctx, t, root, one, all)
	case 4:
		return collectives.Scatter(ctx, t, root, all, one)
	case 5:
		return collectives.AllGather(ctx, t, one, all)
	case 6:
		return collectives.AllToAll(ctx, t, all, out)
	case 7:
		return collectives.ReduceScatter(ctx, t, sum, all, one)
	case 8:
		return collectives.Scan(ctx, t, sum, one, one)
	}
	return collectives.Barrier(ctx, t)
}

// TestSurvivorsMakeCallsInATeamOfTheirOwn cancels a member at a random moment among calls
// of all kinds.
func TestSurvivorsMakeCallsInATeamOfTheirOwn(t *testing.T) {
	cause := errors.New("enough")
	testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			rnd := rand.New(rand.NewPCG(seed, 0))
			for range 4 {
				team, err := r.World.Split(ctx, 0, 0)
				r.NoError(err)
				victim, after, first, size := rnd.IntN(r.N), time.Duration(rnd.IntN(5000))*time.Microsecond, rnd.IntN(10), 1<<rnd.IntN(15)
				mine, cancel := context.WithCancelCause(ctx)
				if r.Me == victim {
					time.AfterFunc(after, func() { cancel(cause) })
				}
				for i := first; err == nil; i++ {
					err = mixed(mine, team, i, size)
				}
				cancel(nil)
				color := 0
				if r.Me == victim {
					r.ErrorIs(err, cause)
					color = -1
				} else {
					r.ErrorIs(err, runtime.ErrTeamBroken)
				}
				rest, err := r.World.Split(ctx, color, 0)
				r.NoError(err)
				if rest == nil {
					continue
				}
				x := []int64{1}
				r.NoError(collectives.AllReduce(ctx, rest, collectives.Sum[int64](), x, x))
				r.EqualValues(r.N-1, x[0])
			}
		})
	})
}

// TestCloseEndsRequestsWithoutAWait starts calls and does not wait. Calls that all
// members started end first; one that only this member started ends with the job.
func TestCloseEndsRequestsWithoutAWait(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		t.Parallel() // members compare their calls after a wait
		vectors := make([][]int64, c.Ranks)
		start := func(ctx context.Context, r *testjob.Rank) {
			x := vectors[r.Me]
			_, err := collectives.Start(ctx, r.World, collectives.AllReduceCall(collectives.Sum[int64](), x, x))
			r.NoError(err)
		}
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			vectors[r.Me] = make([]int64, 5000)
			vectors[r.Me][4999] = 1
			for range 10 {
				start(ctx, r)
			}
		})
		for _, x := range vectors {
			require.EqualValues(t, 59049, x[4999], "3 to the power of 10")
		}
		err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
			if r.Me == 0 {
				start(ctx, r)
			}
		})
		if err != nil {
			require.ErrorIs(t, err, runtime.ErrMismatch)
		}
	})
}

// crowd is many short calls of all kinds.
func crowd(ctx context.Context, r *testjob.Rank) {
	for i := range testwatch.Rounds(1000) {
		r.NoError(mixed(ctx, r.World, i, i%7))
	}
}

// cut has rank 1 die at a moment of its own among long calls of all kinds.
func cut(ctx context.Context, r *testjob.Rank) {
	if r.Me == 1 {
		time.AfterFunc(time.Duration(rand.IntN(300))*time.Millisecond, r.Die)
	}
	b, err := collectives.Alloc[int64](r.World, 1<<18)
	for i := 0; err == nil; i++ {
		if i%2 == 0 {
			err = collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), b.Mem(), b.Mem())
		} else {
			err = mixed(ctx, r.World, i/2, 1<<16)
		}
	}
	r.ErrorIs(err, runtime.ErrRankDead)
}

func TestMembersThatOutnumberTheirCoresMakeThousandCalls(t *testing.T) {
	for _, job := range append(testjob.Processes(8), apart...) {
		t.Run(job.String(), func(t *testing.T) { job.Run(t, "crowd") })
	}
}

func TestKilledProcessEndsLongCallsOfAllRanks(t *testing.T) {
	for _, job := range append(testjob.Processes(5), apart...) {
		t.Run(job.String(), func(t *testing.T) {
			out := job.Try(t, "cut")
			require.Equal(t, 137, out.ExitCode, "%s\n%s", out.Summary(), out.Output)
			require.NotContains(t, out.Output, "Error Trace", "a survivor learned something else")
		})
	}
}
