package collectives_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/rpipe"
	"github.com/gopgas/gopgas/rpipe/active"
	"github.com/gopgas/gopgas/rpipe/conveyor"
	"github.com/gopgas/gopgas/rpipe/fan"
	"github.com/gopgas/gopgas/rpipe/farheap"
	"github.com/gopgas/gopgas/rpipe/gochan"
	"github.com/gopgas/gopgas/rpipe/netpipe"
	"github.com/gopgas/gopgas/runtime"
	"github.com/gopgas/gopgas/window"
)

// TestCallsAfterCloseReturnErrClosed makes each call that needs the job once it is closed.
func TestCallsAfterCloseReturnErrClosed(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		w, err := window.Allocate[int64](ctx, r.World, 8)
		r.NoError(err)
		r.NoError(w.PutValue(ctx, r.Right(), 0, 1))
		team, err := r.World.Split(ctx, 0, 0)
		r.NoError(err)
		graph, err := collectives.NewGraph(ctx, r.World, []int{r.Left()}, []int{r.Right()})
		r.NoError(err)
		plan, err := collectives.Plan(ctx, r.World, collectives.AllGatherCall([]int{1}, make([]int, r.N)))
		r.NoError(err)
		writer, err := rpipe.OpenWriter[int](ctx, r.World, r.Right())
		r.NoError(err)
		reader, err := rpipe.OpenReader[int](ctx, r.World, r.Left())
		r.NoError(err)
		r.NoError(r.Job.Close(ctx))
		one, all := []int{1}, make([]int, r.N)
		var bad []string
		right, left, x := r.Right(), r.Left(), rpipe.WithName("x")
		gather := collectives.AllGatherCall(one, all)
		calls := []struct {
			name string
			call func() error
		}{
			{"Barrier", func() error { return r.World.Barrier(ctx) }},
			{"Barrier of another team", func() error { return team.Barrier(ctx) }},
			{"Exchange", func() error { return second(r.World.Exchange(ctx, nil)) }},
			{"Split", func() error { return second(r.World.Split(ctx, 0, 0)) }},
			{"Team.Free", func() error { return team.Free(ctx) }},
			{"Allocate", func() error { return second(window.Allocate[int](ctx, r.World, 8)) }},
			{"Fence", func() error { return w.Fence(ctx) }},
			{"Window.Free", func() error { return w.Free(ctx) }},
			{"Alloc", func() error { return second(collectives.Alloc[int](r.World, 8)) }},
			{"AllGather", func() error { return collectives.AllGather(ctx, r.World, one, all) }},
			{"Start", func() error { return second(collectives.Start(ctx, r.World, gather)) }},
			{"Plan", func() error { return second(collectives.Plan(ctx, r.World, gather)) }},
			{"Planned.Run", func() error { return plan.Run(ctx) }},
			{"Planned.Start", func() error { return second(plan.Start(ctx)) }},
			{"NewGraph", func() error { return second(collectives.NewGraph(ctx, r.World, nil, nil)) }},
			{"NewCart", func() error { return second(collectives.NewCart(ctx, r.World, []int{r.N}, []bool{true})) }},
			{"NeighborAllGather", func() error { return collectives.NeighborAllGather(ctx, graph, one, []int{0}) }},
			{"OpenWriter", func() error { return second(rpipe.OpenWriter[int](ctx, r.World, right, x)) }},
			{"OpenReader", func() error { return second(rpipe.OpenReader[int](ctx, r.World, left, x)) }},
			{"OpenSender", func() error { return second(gochan.OpenSender[int](ctx, r.World, right, gochan.WithName("x"))) }},
			{"OpenReceiver", func() error { return second(gochan.OpenReceiver[int](ctx, r.World, left, gochan.WithName("x"))) }},
			{"Dial", func() error { return second(netpipe.Dial(ctx, r.World, right)) }},
			{"Listen", func() error { return second(netpipe.Listen(ctx, r.World)) }},
			{"farheap.Open", func() error { return second(farheap.Open[int](ctx, r.World, right, farheap.WithName("x"))) }},
			{"farheap.Serve", func() error { return second(farheap.Serve(ctx, r.World, left, farheap.WithName("x"))) }},
			{"OpenFanIn", func() error { return second(fan.OpenIn[int](ctx, r.World, []int{left}, x)) }},
			{"OpenFanOut", func() error { return second(fan.OpenOut[int](ctx, r.World, []int{right}, x)) }},
			{"OpenActive", func() error { return second(active.Open(ctx, r.World, nil, active.WithName("x"))) }},
			{"OpenConveyor", func() error { return second(conveyor.Open[int](ctx, r.World, conveyor.WithName("x"))) }},
			{"OverWindow", func() error { return second(rpipe.OverWindow(ctx, r.World, 4, x)) }},
			{"Send", func() error { return writer.Send(ctx, one) }},
			{"Read", func() error { return second(reader.Read(ctx)) }},
		}
		for _, c := range calls {
			if err := c.call(); !errors.Is(err, runtime.ErrClosed) {
				bad = append(bad, fmt.Sprint(c.name, ": ", err))
			}
		}
		r.Empty(bad)
	})
}

func second[T any](_ T, err error) error { return err }
