package collectives_test

import (
	"context"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// TestCallsUnderNilContextWait makes calls that wait, and some that wait over
// some providers only.
func TestCallsUnderNilContextWait(t *testing.T) {
	testjob.All(t, 2, func(_ context.Context, r *testjob.Rank) {
		var none context.Context
		w, err := window.Allocate[int64](none, r.World, 1<<18)
		r.NoError(err)
		r.NoError(w.Fence(none))
		long := make([]int64, 1<<18)
		for range 300 { // more than a queue takes
			r.NoError(w.PutValue(none, r.Right(), 1, 7))
		}
		r.NoError(w.Put(none, r.Right(), 0, long))
		r.NoError(w.PutNotify(none, r.Right(), 0, long[:8], window.Signal{Slot: 0, Value: 1}))
		_, _, err = w.WaitNotify(none, window.Until{Slots: []int{0}, Value: 1})
		r.NoError(err)
		r.NoError(w.Flush(none, r.Right()))
		r.NoError(w.FlushAll(none))
		r.NoError(w.Fence(none))
		r.NoError(w.Get(none, r.Left(), 0, long))
		_, err = w.GetValue(none, r.Left(), 0)
		r.NoError(err)
		_, err = window.FetchAdd(none, w, r.Left(), 0, 1)
		r.NoError(err)
		r.NoError(window.AtomicAdd(none, w, r.Left(), 0, 1))
		r.NoError(w.Fence(none))
		put, err := w.StartPut(none, r.Right(), 0, long)
		r.NoError(err)
		r.NoError(put.Wait(none))
		held, err := w.Lock(none, 0, window.Exclusive)
		r.NoError(err)
		r.NoError(held.Unlock(none))
		r.NoError(w.Fence(none))
		r.NoError(w.Free(none))

		team, err := r.World.Split(none, 0, 0)
		r.NoError(err)
		w, err = window.Allocate[int64](none, team, 1)
		r.NoError(err)
		_, err = w.Lock(none, r.Right(), window.Shared)
		r.NoError(err)
		r.ErrorIs(w.Free(none), window.ErrHeld)
		r.NoError(team.Barrier(none))
		_, err = team.Exchange(none, nil)
		r.NoError(err)
		in, out := []int{1}, []int{0}
		r.NoError(collectives.AllReduce(none, team, collectives.Sum[int](), in, out))
		started, err := collectives.Start(none, team, collectives.AllReduceCall(collectives.Sum[int](), in, out))
		r.NoError(err)
		r.NoError(started.Wait(none))
		long = long[:1<<17]
		r.NoError(collectives.Broadcast(none, team, 0, long))
		plan, err := collectives.Plan(none, team, collectives.BroadcastCall(0, long))
		r.NoError(err)
		r.NoError(plan.Run(none))
		r.NoError(plan.Free(none))
		graph, err := collectives.NewGraph(none, team, []int{r.Left()}, []int{r.Right()})
		r.NoError(err)
		r.NoError(collectives.NeighborAllGather(none, graph, in, out))
		r.NoError(team.Free(none))
		r.NoError(r.Job.Close(none))
	})
}

func TestRunUnderNilContextRunsAJob(t *testing.T) {
	var none context.Context
	body := func(ctx context.Context, job *runtime.Job) error { return job.World().Barrier(ctx) }
	if err := runtime.RunLocal(none, 2, body); err != nil {
		t.Error(err)
	}
	if err := runtime.Run(none, body); err != nil {
		t.Error(err)
	}
}
