package collectives_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// TestPanicOfOperatorEndsCallsOfAllMembers has programs recover, which may go on without
// the team.
func TestPanicOfOperatorEndsCallsOfAllMembers(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		for _, count := range []int{1, 1 << 14} {
			var panicked atomic.Int32
			bad := collectives.NewOp("bad", true, func(int, int) int { panic("no") })
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				team, err := r.World.Split(ctx, 0, 0)
				r.NoError(err)
				x := make([]int, count)
				func() {
					defer func() {
						if recover() != nil {
							panicked.Add(1)
						}
					}()
					r.ErrorIs(collectives.AllReduce(ctx, team, bad, x, x), runtime.ErrTeamBroken)
				}()
				r.ErrorIs(team.Barrier(ctx), runtime.ErrTeamBroken)
				r.NoError(r.World.Barrier(ctx), "the world is whole")
			})
			require.NotZero(t, panicked.Load())
		}
	})
}

// panics has the operator of a started call panic, which the program cannot recover.
func panics(ctx context.Context, r *testjob.Rank) {
	x := make([]int, 1000)
	op := collectives.NewOp("fine", true, func(a, _ int) int { return a })
	if r.Me == 1 {
		op = collectives.NewOp("fine", true, func(int, int) int { panic("no") })
	}
	var err error
	for range 100 { // until it is rank 1 that combines
		var req *collectives.Request
		if req, err = collectives.Start(ctx, r.World, collectives.ReduceCall(1, op, x, x)); err == nil {
			err = req.Wait(ctx)
		}
		if err == nil {
			err = r.World.Barrier(ctx)
		}
		if err != nil {
			break
		}
	}
	r.ErrorIs(err, runtime.ErrRankDead)
}

func TestPanicOfOperatorInStartedCallEndsTheProcess(t *testing.T) {
	for _, job := range testjob.Processes(3) {
		t.Run(job.String(), func(t *testing.T) {
			out := job.Try(t, "panics")
			require.Equal(t, 2, out.ExitCode, "%s\n%s", out.Summary(), out.Output)
			require.Contains(t, out.Output, "panic: no")
			require.NotContains(t, out.Output, "Error Trace", "the others learned something else")
		})
	}
}
