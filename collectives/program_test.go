package collectives_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
)

// A step is a call of a random program that was started.
type step struct {
	req   *collectives.Request
	check func()
}

// TestRandomProgramAgreesWithTheModel has all ranks make the same calls in the same order.
// Each rank chooses by itself whether it blocks, starts or plans a call, and when it waits.
func TestRandomProgramAgreesWithTheModel(t *testing.T) {
	program := func(t *testing.T, c testjob.Config) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			shared := rand.New(rand.NewPCG(seed, 0))           // chooses the calls
			own := rand.New(rand.NewPCG(seed, uint64(r.Me)+1)) // chooses how
			list := allTrials()
			var started []step
			for range 60 {
				if shared.IntN(6) == 0 {
					r.NoError(r.World.Barrier(ctx))
					continue
				}
				s := draw(shared, r.N, 8<<10)
				s.buffers = false // they would be freed while calls are under way
				call, check := list[shared.IntN(len(list))].call(s, r)
				started = append(started, makeSomehow(ctx, r, own, call, check))
				if own.IntN(3) == 0 {
					i := own.IntN(len(started))
					settle(ctx, r, started[i])
					started = append(started[:i], started[i+1:]...)
				}
			}
			for _, s := range started {
				settle(ctx, r, s)
			}
		})
	}
	testjob.Each(t, 1, program)
	testjob.EachApart(t, program)
}

// makeSomehow makes a call, or starts it.
func makeSomehow(ctx context.Context, r *testjob.Rank, rnd *rand.Rand, c collectives.Call, check func()) step {
	switch rnd.IntN(3) {
	case 0:
		req, err := collectives.Start(ctx, r.World, c)
		r.NoError(err)
		return step{req, check}
	case 1:
		plan, err := collectives.Plan(ctx, r.World, c)
		r.NoError(err)
		req, err := plan.Start(ctx)
		r.NoError(err)
		return step{req, check}
	}
	plan, err := collectives.Plan(ctx, r.World, c)
	r.NoError(err)
	r.NoError(plan.Run(ctx))
	return step{nil, check}
}

// settle waits for a step and checks its result.
func settle(ctx context.Context, r *testjob.Rank, s step) {
	if s.req != nil {
		r.NoError(s.req.Wait(ctx))
	}
	s.check()
}
