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

// several makes several calls of one description.
func several(ctx context.Context, r *testjob.Rank, c *team.Call) {
	for range 3 {
		r.NoError(blocking(ctx, r, c, nil))
	}
}

// blocking makes a blocking call that runs do.
func blocking(ctx context.Context, r *testjob.Rank, c *team.Call, do func() error) error {
	f := streamOf(r)
	key, err := f.Calls.Begin(ctx, c)
	if err != nil {
		return err
	}
	if do != nil {
		err = do()
	}
	return f.Calls.End(key, c, err)
}

func TestCallsStartedDuringABlockingCallRunBehindIt(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		f := streamOf(r)
		for range 5 {
			several(ctx, r, &allReduce)
			key, err := f.Calls.Begin(ctx, &allReduce)
			r.NoError(err)
			ended := false // calls run one after the other, so it needs no lock
			var calls []*pending
			for i := range uint64(100) { // more than a rank remembers
				calls = append(calls, start(ctx, f, func(_ context.Context, got team.Key) error {
					if !ended || got.Seq != key.Seq+1+i {
						return errors.New("out of turn")
					}
					return nil
				}))
			}
			ended = true
			r.NoError(f.Calls.End(key, &allReduce, nil))
			for _, c := range calls {
				r.NoError(c.wait(ctx))
			}
			r.NoError(r.World.Barrier(ctx), "members made the same calls")
		}
	})
}

func TestCallDuringABlockingCallReturnsErrMismatchAndDoesNotEndIt(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		several(ctx, r, &allReduce)
		r.NoError(r.World.Barrier(ctx))
		r.NoError(blocking(ctx, r, &allReduce, func() error {
			refused := make(chan error)
			go func() { refused <- blocking(ctx, r, &allReduce, nil) }()
			r.ErrorIs(<-refused, runtime.ErrMismatch)
			go func() { refused <- r.World.Barrier(ctx) }()
			r.ErrorIs(<-refused, runtime.ErrMismatch)
			return nil
		}))
		several(ctx, r, &allReduce)
		r.NoError(r.World.Barrier(ctx))
	})
}

func TestMembersThatMadeTwoCallsInOppositeOrderReturnErrMismatch(t *testing.T) {
	t.Parallel() // each job waits until its ranks compare their calls
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		one, other := allReduce, allReduce
		other.Count++
		for range 2 {
			several(ctx, r, &one)
			several(ctx, r, &other)
		}
		r.NoError(r.World.Barrier(ctx)) // else inquiries could end the calls of a slow member
		c := &other
		if r.Me == r.N-1 {
			c = &one
		}
		err := blocking(ctx, r, c, func() error { return streamOf(r).Await(ctx, func() bool { return false }) })
		isMismatch(r, err, "AllReduce of 4 float64, Sum", "AllReduce of 5 float64, Sum")
	})
}

// TestBlockingAndStartedCallsAreOneStream makes the same calls at all members, each
// blocking or started. Barriers compare the chains.
func TestBlockingAndStartedCallsAreOneStream(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		f := streamOf(r)
		calls := make([]team.Call, 100) // more than a rank remembers
		for i := range calls {
			calls[i] = team.Call{Name: "Broadcast", Root: team.NoRoot, Count: i, Of: "int", Hash: uint64(i)}
		}
		which, how := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, uint64(r.Me)))
		before, spare := uint64(0), team.Call{}
		follows := func(key team.Key) error {
			if before != 0 && key.Seq != before+1 {
				return errors.New("out of turn")
			}
			before = key.Seq
			return nil
		}
		for i := range 2000 {
			if i%100 == 99 {
				r.NoError(r.World.Barrier(ctx))
				before++
			}
			c := &calls[which.IntN(1+i%len(calls))]
			switch how.IntN(10) {
			case 0:
				_, err := f.Calls.Start(ctx, c, func(_ context.Context, key team.Key) error { return follows(key) }, func(error) {})
				r.NoError(err)
				continue
			case 1:
				spare = *c // the next such call changes it
				c = &spare
			}
			key, err := f.Calls.Begin(ctx, c)
			r.NoError(err)
			r.NoError(f.Calls.End(key, c, follows(key)))
		}
	})
}
