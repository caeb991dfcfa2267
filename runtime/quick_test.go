package runtime_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// warmUp makes calls of one description, of which all but the first are quick.
func warmUp(ctx context.Context, r *testjob.Rank, c *team.Call) {
	for range 3 {
		r.NoError(blocking(ctx, r, c, nil))
	}
}

// blocking makes a call that does something.
func blocking(ctx context.Context, r *testjob.Rank, c *team.Call, do func() error) error {
	f := streamOf(r)
	seq, err := f.Calls.Begin(ctx, c, true)
	if err != nil {
		return err
	}
	if do != nil {
		err = do()
	}
	return f.Calls.End(seq, c, err)
}

func TestACallStartedDuringAQuickOneComesBehindIt(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		f := streamOf(r)
		for range 5 {
			warmUp(ctx, r, &allReduce)
			seq, err := f.Calls.Begin(ctx, &allReduce, true)
			r.NoError(err)
			ended := false // calls run one after the other, so nothing guards it
			var calls []*pending
			for i := range uint64(100) { // more than are remembered
				calls = append(calls, start(ctx, f, func(_ context.Context, got uint64) error {
					if !ended || got != seq+1+i {
						return errors.New("out of turn")
					}
					return nil
				}))
			}
			ended = true
			r.NoError(f.Calls.End(seq, &allReduce, nil))
			for _, c := range calls {
				r.NoError(c.wait(ctx))
			}
			r.NoError(r.World.Barrier(ctx), "members made the same calls")
		}
	})
}

func TestACallDuringAQuickOneIsAMismatchAndDoesNotEndIt(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		warmUp(ctx, r, &allReduce)
		r.NoError(r.World.Barrier(ctx))
		r.NoError(blocking(ctx, r, &allReduce, func() error {
			refused := make(chan error)
			go func() { refused <- blocking(ctx, r, &allReduce, nil) }()
			r.ErrorIs(<-refused, runtime.ErrMismatch)
			go func() { refused <- r.World.Barrier(ctx) }()
			r.ErrorIs(<-refused, runtime.ErrMismatch)
			return nil
		}))
		warmUp(ctx, r, &allReduce)
		r.NoError(r.World.Barrier(ctx))
	})
}

func TestWaitingInAQuickCallForAMemberThatDoesSomethingElseEnds(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		one, other := allReduce, allReduce // of the same slot
		other.Count++
		for range 2 {
			warmUp(ctx, r, &one)
			warmUp(ctx, r, &other)
		}
		c := &other // which is quick
		if r.Me == r.N-1 {
			c = &one
		}
		err := blocking(ctx, r, c, func() error { return streamOf(r).Await(ctx, func() bool { return false }) })
		isMismatch(r, err, "AllReduce of 4 float64, Sum", "AllReduce of 5 float64, Sum")
	})
}

// TestQuickCallsAndOthersAreOneStream makes the same calls at all members, each in any
// of the ways there are. Barriers compare what was called.
func TestQuickCallsAndOthersAreOneStream(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		f := streamOf(r)
		calls := make([]team.Call, 100) // more than there are slots
		for i := range calls {
			calls[i] = team.Call{Kind: team.Broadcast, Count: i, Of: "int", Mark: uint64(i)}
		}
		which, how := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, uint64(r.Me)))
		before, spare := uint64(0), team.Call{}
		follows := func(seq uint64) error {
			if before != 0 && seq != before+1 {
				return errors.New("out of turn")
			}
			before = seq
			return nil
		}
		for i := range 2000 {
			if i%100 == 99 {
				r.NoError(r.World.Barrier(ctx))
				before++
			}
			c := &calls[which.IntN(1+i%len(calls))]
			lasts := true
			switch how.IntN(10) {
			case 0:
				r.NoError(f.Calls.Start(ctx, c, func(_ context.Context, seq uint64) error { return follows(seq) }, func(error) {}))
				continue
			case 1:
				spare = *c
				c, lasts = &spare, false
			}
			seq, err := f.Calls.Begin(ctx, c, lasts)
			r.NoError(err)
			r.NoError(f.Calls.End(seq, c, follows(seq)))
		}
	})
}
