package runtime_test

import (
	"context"
	"testing"
	"time"

	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// isMismatch checks that err names two calls.
func isMismatch(r *testjob.Rank, err error, calls ...string) {
	r.ErrorIs(err, runtime.ErrMismatch)
	var m *runtime.MismatchError
	r.ErrorAs(err, &m)
	r.ElementsMatch(calls, []string{m.Call, m.OtherDid})
}

// TestMembersThatWaitInDifferentCallsGetErrMismatch makes the members wait in ways that
// exchange no message.
func TestMembersThatWaitInDifferentCallsGetErrMismatch(t *testing.T) {
	t.Parallel() // each job waits until its ranks compare their calls
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		f := streamOf(r)
		c := team.Call{Name: "Broadcast", Root: 1, Count: 8, Of: "int"}
		if r.Me == r.N-1 {
			c = team.Call{Name: "Broadcast", Root: 0, Count: 8, Of: "int"}
		}
		key, err := f.Calls.Begin(ctx, &c)
		r.NoError(err)
		err = f.Calls.End(key, &c, f.Await(ctx, func() bool { return false }))
		isMismatch(r, err, "Broadcast of 8 int, root 1", "Broadcast of 8 int, root 0")
		isMismatch(r, r.World.Barrier(ctx), "Broadcast of 8 int, root 1", "Broadcast of 8 int, root 0")
	})
}

func TestBarrierAndOtherCallReturnErrMismatch(t *testing.T) {
	t.Parallel() // each job waits until its ranks compare their calls
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		f := streamOf(r)
		var err error
		if r.Me == 0 {
			var key team.Key
			key, err = f.Calls.Begin(ctx, &allReduce)
			r.NoError(err)
			err = f.Calls.End(key, &allReduce, f.Await(ctx, func() bool { return false }))
		} else {
			err = r.World.Barrier(ctx)
		}
		isMismatch(r, err, "AllReduce of 4 float64, Sum", "Barrier")
	})
}

func TestInquiryComparesEarlierCalls(t *testing.T) {
	t.Parallel() // each job waits until its ranks compare their calls
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		made := make(chan struct{}) // else inquiries could end a call of rank 0
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			f := streamOf(r)
			if r.Me > 0 {
				<-made
				isMismatch(r, r.World.Barrier(ctx), "AllReduce of 4 float64, Sum", "Barrier")
				return
			}
			for range 10 { // these wait for no member
				key, err := f.Calls.Begin(ctx, &allReduce)
				r.NoError(err)
				r.NoError(f.Calls.End(key, &allReduce, nil))
			}
			close(made)
			<-f.Whole.Done() // no call of this rank is under way
			isMismatch(r, context.Cause(f.Whole), "AllReduce of 4 float64, Sum", "Barrier")
		})
	})
}

func TestLateMemberIsNoMismatch(t *testing.T) {
	t.Parallel() // it waits most of its time
	testjob.Config{Provider: "loop", Ranks: 3}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		if r.Me == 0 {
			time.Sleep(350 * time.Millisecond) // the other ranks send inquiries during the sleep
		}
		r.NoError(r.World.Barrier(ctx))
		r.NoError(r.World.Barrier(ctx))
	})
}

func TestDataOfOtherCallNamesBothCalls(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		f := streamOf(r)
		c := team.Call{Name: "Reduce", Root: r.Me, Count: 1, Of: "int8, Max"}
		key, err := f.Calls.Begin(ctx, &c) // fails if other ranks have found the mismatch before
		if err == nil {
			err = f.Calls.End(key, &c, f.Differs(ctx, key.Seq, r.Right()))
		}
		r.ErrorIs(err, runtime.ErrMismatch)
		var m *runtime.MismatchError
		r.ErrorAs(err, &m)
		r.NotEqual(m.Call, m.OtherDid)
		r.Contains(m.Call, "Reduce of 1 int8, Max, root ")
	})
}

// TestCallsEndWhenMemberReturned has a member return from its body: its job then waits for
// the other ranks.
func TestCallsEndWhenMemberReturned(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, team *runtime.Team) error{
		"Barrier":  func(ctx context.Context, team *runtime.Team) error { return team.Barrier(ctx) },
		"FreeTeam": func(ctx context.Context, team *runtime.Team) error { return team.Free(ctx) },
		"Split": func(ctx context.Context, team *runtime.Team) error {
			_, err := team.Split(ctx, 0, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // members wait before they inquire
			testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
				team, err := r.World.Split(ctx, 0, 0)
				r.NoError(err)
				if r.Me < r.N-1 {
					err := call(ctx, team)
					r.ErrorIs(err, runtime.ErrMismatch)
					r.ErrorContains(err, "called Close")
					var e *runtime.MismatchError
					r.ErrorAs(err, &e)
					r.Contains([]int{e.Rank, e.Other}, r.N-1)
				}
			})
		})
	}
}
