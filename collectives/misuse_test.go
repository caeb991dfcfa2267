package collectives_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

func TestNeighborCallsWithoutGraphReturnErrors(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		x, y, none := []int{1}, []int{2}, collectives.Blocks{}
		for _, g := range []*collectives.Graph{nil, {}, new(collectives.Cart).Graph} {
			for name, err := range map[string]error{
				"NeighborAllGather":  collectives.NeighborAllGather(ctx, g, x, y),
				"NeighborAllGatherV": collectives.NeighborAllGatherV(ctx, g, x, y, none),
				"NeighborAllToAll":   collectives.NeighborAllToAll(ctx, g, x, y),
				"NeighborAllToAllV":  collectives.NeighborAllToAllV(ctx, g, x, none, y, none),
				"Start":              startErr(ctx, r.World, collectives.NeighborAllGatherCall(g, x, y)),
			} {
				r.ErrorIs(err, runtime.ErrTeam, name)
				var op *collectives.OpError
				r.ErrorAs(err, &op, name)
			}
			r.Empty(g.In())
			r.Empty(g.Out())
		}
		_, err := collectives.NewGraph(ctx, nil, nil, nil)
		r.ErrorIs(err, runtime.ErrTeam)
		_, err = collectives.NewCart(ctx, nil, nil, nil)
		r.ErrorIs(err, runtime.ErrTeam)
	})
}

func TestOperatorsWithoutFunctionOrNameReturnErrors(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		x := []int{1}
		last := func(_, b int) int { return b }
		for _, op := range []collectives.Op[int]{
			collectives.NewOp[int]("nothing", true, nil),
			collectives.NewSliceOp[int]("nothing", true, nil),
			collectives.NewOp("", true, last),
		} {
			r.ErrorIs(collectives.AllReduce(ctx, r.World, op, x, x), collectives.ErrOp)
		}
	})
}

func TestNilOptionDoesNothing(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		x := []int{1}
		r.NoError(collectives.AllReduce(ctx, r.World, collectives.Sum[int](), x, x, nil, collectives.Deterministic(), nil))
		r.Equal(r.N, x[0])
	})
}

func TestCallsOfZeroPlannedReturnErrUnsupported(t *testing.T) {
	for _, p := range []*collectives.Planned{nil, {}} {
		testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
			_, startErr := p.Start(ctx)
			for _, err := range []error{p.Run(ctx), startErr, p.Free(ctx)} {
				r.ErrorIs(err, errors.ErrUnsupported)
				var op *collectives.OpError
				r.ErrorAs(err, &op)
			}
		})
	}
}

func TestPlanUnderAnEndedContextReturnsItsCause(t *testing.T) {
	cause := errors.New("no longer needed")
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		ended, cancel := context.WithCancelCause(ctx)
		cancel(cause)
		_, err := collectives.Plan(ended, r.World, collectives.BroadcastCall(0, []int{1}))
		r.ErrorIs(err, cause)
		r.NoError(r.World.Barrier(ctx), "the team is none the worse")
	})
}

func TestMemOfFreedBufferReturnsNil(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		b, err := collectives.Alloc[int](r.World, 10)
		r.NoError(err)
		r.NoError(b.Free())
		r.Nil(b.Mem())
		var none *collectives.Buffer[int]
		for _, b := range []*collectives.Buffer[int]{none, {}} {
			r.NoError(b.Free())
			r.Nil(b.Mem())
		}
	})
}

func TestAlgorithmsNamesOnlyUsableAlgorithms(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		x := []int{r.Me}
		odd := collectives.NewOp("left", false, func(a, _ int) int { return a })
		names := collectives.AllReduceCall(odd, x, x).Algorithms(r.World)
		r.NotEmpty(names)
		for _, name := range names {
			x[0] = r.Me
			r.NoError(collectives.AllReduce(ctx, r.World, odd, x, x, collectives.WithAlgorithm(name)), name)
			r.Zero(x[0], name)
		}
		all := collectives.AllReduceCall(odd, x, x).Algorithms(nil)
		r.Subset(all, names)
		err := collectives.AllReduce(ctx, r.World, odd, x, x, collectives.WithAlgorithm("magic"))
		r.ErrorIs(err, collectives.ErrAlgorithm)
		for _, name := range names {
			r.ErrorContains(err, name)
		}
		for _, name := range all {
			if !slices.Contains(names, name) {
				r.ErrorIs(collectives.AllReduce(ctx, r.World, odd, x, x, collectives.WithAlgorithm(name)), collectives.ErrAlgorithm, name)
			}
		}
		r.Empty(collectives.Call{}.Algorithms(r.World))
		r.Empty(collectives.Call{}.Algorithms(nil))
	})
}

func TestWaitOfZeroRequestReturnsAnError(t *testing.T) {
	for _, r := range []*collectives.Request{nil, {}} {
		require.ErrorIs(t, r.Wait(t.Context()), errors.ErrUnsupported)
		ended, err := r.Test()
		require.True(t, ended)
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.Nil(t, r.Done())
	}
}
