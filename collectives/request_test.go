package collectives_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestBlockingCallRunsBehindStartedCalls(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		sum := collectives.Sum[int]()
		a, b, c := []int{r.Me}, []int{0}, []int{0}
		var requests []*collectives.Request
		for _, call := range []collectives.Call{
			collectives.AllReduceCall(sum, a, b),
			collectives.AllReduceCall(sum, b, c), // of what the first gave
			collectives.BroadcastCall(r.N-1, c),
		} {
			req, err := collectives.Start(ctx, r.World, call)
			r.NoError(err)
			requests = append(requests, req)
		}
		d := []int{0}
		r.NoError(collectives.AllReduce(ctx, r.World, sum, c, d))
		for _, req := range requests {
			ended, err := req.Test()
			r.True(ended, "a blocking call comes behind")
			r.NoError(err)
			r.NoError(req.Wait(ctx))
			<-req.Done()
		}
		total := r.N * (r.N - 1) / 2
		r.Equal([]int{total, total * r.N, total * r.N * r.N}, []int{b[0], c[0], d[0]})
	})
}

func TestStartedCallEndsWithoutAWait(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		big := make([]int32, 100000)
		for i := range big {
			big[i] = int32(i)
		}
		req, err := collectives.Start(ctx, r.World, collectives.AllReduceCall(collectives.Sum[int32](), big, big))
		r.NoError(err)
		for ended := false; !ended; { // as a program does that computes
			select {
			case <-req.Done():
				ended = true
			case <-ctx.Done():
				r.NoError(context.Cause(ctx))
			}
		}
		r.EqualValues(99999*r.N, big[99999])
	})
}

func TestWaitWhoseContextEndsLeavesItsRequestUnderWay(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		x := []int64{1}
		if r.Me == 0 {
			req, err := collectives.Start(ctx, r.World, collectives.AllReduceCall(collectives.Sum[int64](), x, x))
			r.NoError(err)
			gone, cancel := context.WithCancel(ctx)
			cancel()
			if err := req.Wait(gone); err != nil {
				r.ErrorIs(err, context.Canceled)
			}
			r.NoError(req.Wait(ctx))
		} else {
			r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int64](), x, x), "started and blocking calls match")
		}
		r.EqualValues(r.N, x[0])
	})
}

// A lazy stream runs a started call in RunHere, or when the test calls run.
type lazy struct {
	team.Stream
	run           func()
	here, hurried int // calls of RunHere and of Hurry
}

func (l *lazy) Start(ctx context.Context, c *team.Call, run func(context.Context, team.Key) error, done func(error)) (team.Key, error) {
	key, err := l.Begin(ctx, c)
	l.run = sync.OnceFunc(func() { done(l.End(key, c, run(ctx, key))) })
	return key, err
}

func (l *lazy) RunHere(team.Key) {
	l.here++
	l.run()
}

func (l *lazy) Hurry() { l.hurried++ }

// TestWaitWithTheContextOfStartRunsTheCall: a Wait with another context may have to return
// ahead of the call, and so runs nothing. Nor does a Wait for a call with an operator of the
// program.
func TestWaitWithTheContextOfStartRunsTheCall(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		inner := team.Of(r.World)
		l := &lazy{Stream: inner.Calls}
		inner.Calls = l
		defer func() { inner.Calls = l.Stream }()
		gone, cancel := context.WithCancel(ctx)
		cancel()
		x := []int64{1}
		req, err := collectives.Start(ctx, r.World, collectives.AllReduceCall(collectives.Sum[int64](), x, x))
		r.NoError(err)
		r.ErrorIs(req.Wait(gone), context.Canceled)
		r.Equal([]int{0, 1}, []int{l.here, l.hurried})
		r.NoError(req.Wait(ctx))
		r.Equal(1, l.here)
		r.EqualValues(r.N, x[0])

		own := collectives.NewOp("max", true, func(a, b int64) int64 { return max(a, b) })
		req, err = collectives.Start(ctx, r.World, collectives.AllReduceCall(own, x, x))
		r.NoError(err)
		go l.run()
		<-req.Done()
		r.NoError(req.Wait(ctx))
		r.Equal([]int{1, 2}, []int{l.here, l.hurried})
	})
}

func TestStartedCallWhoseContextEndsBreaksTheTeam(t *testing.T) {
	cause := errors.New("no longer needed")
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		team, err := r.World.Split(ctx, 0, 0)
		r.NoError(err)
		x := []int64{1}
		if r.Me > 0 {
			r.ErrorIs(team.Barrier(ctx), runtime.ErrTeamBroken)
			return
		}
		mine, cancel := context.WithCancelCause(ctx)
		req, err := collectives.Start(mine, team, collectives.AllReduceCall(collectives.Sum[int64](), x, x))
		r.NoError(err)
		cancel(cause)
		r.ErrorIs(req.Wait(ctx), cause)
	})
}

func TestEachRunOfAPlanMakesItsCall(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		x := make([]int64, 10)
		plan, err := collectives.Plan(ctx, r.World, collectives.AllReduceCall(collectives.Sum[int64](), x, x))
		r.NoError(err)
		want := int64(1)
		x[9] = 1
		for i := range 10 {
			want *= int64(r.N)
			if i%2 == 0 {
				r.NoError(plan.Run(ctx))
			} else {
				req, err := plan.Start(ctx)
				r.NoError(err)
				r.NoError(req.Wait(ctx))
			}
			r.Equal(want, x[9])
		}
		r.NoError(plan.Free(ctx))
		r.NoError(plan.Free(ctx), "freeing again does nothing")
		r.ErrorIs(plan.Run(ctx), collectives.ErrFreed)
		_, err = plan.Start(ctx)
		r.ErrorIs(err, collectives.ErrFreed)
	})
}

func TestStartedCallKeepsACopyOfItsBlocks(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		counts := make([]int, r.N)
		for i := range counts {
			counts[i] = i + 1
		}
		all := make([]int, r.N*(r.N+1)/2)
		mine := make([]int, r.Me+1)
		mine[r.Me] = r.Me
		call := collectives.AllGatherVCall(mine, all, collectives.Blocks{Counts: counts})
		plan, err := collectives.Plan(ctx, r.World, call)
		r.NoError(err)
		request, err := collectives.Start(ctx, r.World, call)
		r.NoError(err)
		for i := range counts {
			counts[i] = 1 << 40
		}
		r.NoError(request.Wait(ctx))
		r.NoError(plan.Run(ctx))
		for i := range r.N {
			r.Equal(i, all[(i+1)*(i+2)/2-1])
		}
		r.NoError(plan.Free(ctx))
	})
}

func TestRunOfPlanUnderWayReturnsErrBusy(t *testing.T) {
	testjob.Each(t, 2, func(t *testing.T, c testjob.Config) {
		said := make(chan struct{})
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			x := []int64{1}
			plan, err := collectives.Plan(ctx, r.World, collectives.AllReduceCall(collectives.Sum[int64](), x, x))
			r.NoError(err)
			if r.Me == 0 {
				req, err := plan.Start(ctx)
				r.NoError(err)
				r.ErrorIs(plan.Run(ctx), collectives.ErrBusy, "the others have not come")
				close(said)
				r.NoError(req.Wait(ctx))
			} else {
				<-said
				r.NoError(plan.Run(ctx))
			}
			r.EqualValues(r.N, x[0])
		})
	})
}

func TestAllocReturnsZeroedMemoryAndFreeGivesItBack(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		const n = 100000
		for range 7 {
			b, err := collectives.Alloc[[3]int32](r.World, n) // most of a MiB, in a heap of 4
			r.NoError(err)
			r.Len(b.Mem(), n)
			r.Zero(b.Mem()[n-1])
			b.Mem()[n-1][2] = 1
			r.NoError(b.Free())
			r.NoError(b.Free())
		}
		for want, alloc := range map[error]func() error{
			collectives.ErrRange: func() error { _, err := collectives.Alloc[int](r.World, -1); return err },
			collectives.ErrType:  func() error { _, err := collectives.Alloc[string](r.World, 1); return err },
			runtime.ErrExhausted: func() error { _, err := collectives.Alloc[byte](r.World, 1<<40); return err },
			runtime.ErrTeam:      func() error { _, err := collectives.Alloc[byte](nil, 1); return err },
		} {
			r.ErrorIs(alloc(), want)
		}
	}, runtime.WithHeap(4<<20))
}
