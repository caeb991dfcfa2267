package collectives_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

// A differing is a pair of calls, of rank 0 and of all other ranks, that do not match.
type differing struct {
	name         string
	zero, others func(ctx context.Context, t *runtime.Team) error
	texts        []string
}

func reduced(count int, op collectives.Op[int64], opts ...collectives.Option) func(context.Context, *runtime.Team) error {
	return func(ctx context.Context, t *runtime.Team) error {
		return collectives.AllReduce(ctx, t, op, make([]int64, count), make([]int64, count), opts...)
	}
}

func cast(root, count int) func(context.Context, *runtime.Team) error {
	return func(ctx context.Context, t *runtime.Team) error {
		return collectives.Broadcast(ctx, t, root, make([]int32, count))
	}
}

func differings() []differing {
	sum, biggest := collectives.Sum[int64](), collectives.Max[int64]()
	return []differing{
		{"operator", reduced(4, sum), reduced(4, biggest), []string{"AllReduce of 4 int64, Sum", "AllReduce of 4 int64, Max"}},
		{"length", reduced(4, sum), reduced(5, sum), []string{"AllReduce of 4 int64, Sum", "AllReduce of 5 int64, Sum"}},
		{"option", reduced(4, sum), reduced(4, sum, collectives.Deterministic()),
			[]string{"AllReduce of 4 int64, Sum", "AllReduce of 4 int64, Sum, deterministic"}},
		{"type", reduced(4, sum), func(ctx context.Context, t *runtime.Team) error {
			return collectives.AllReduce(ctx, t, collectives.Sum[float64](), make([]float64, 4), make([]float64, 4))
		}, []string{"AllReduce of 4 int64, Sum", "AllReduce of 4 float64, Sum"}},
		{"kind of operator", reduced(4, collectives.NewOp("f", true, func(a, b int64) int64 { return a + b })),
			reduced(4, collectives.NewSliceOp("f", true, func(dst, _, _ []int64) { clear(dst) })),
			[]string{"AllReduce of 4 int64, f of single elements", "AllReduce of 4 int64, f"}},
		{"root", cast(0, 3), cast(1, 3), []string{"Broadcast of 3 int32, root 0", "Broadcast of 3 int32, root 1"}},
		{"collective", reduced(4, sum), cast(1, 3), []string{"AllReduce of 4 int64, Sum", "Broadcast of 3 int32, root 1"}},
		{"barrier", reduced(4, sum), collectives.Barrier, []string{"AllReduce of 4 int64, Sum", "Barrier"}},
	}
}

func TestMismatchErrorNamesCallsThatDifferAtAllMembers(t *testing.T) {
	for _, d := range differings() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel() // members compare their calls after a wait
			testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
				call := d.others
				if r.Me == 0 {
					call = d.zero
				}
				// A root that has sent waits for no member: its next call returns the error.
				err := call(ctx, r.World)
				if err == nil {
					err = reduced(1, collectives.Min[int64]())(ctx, r.World)
				}
				r.ErrorIs(err, runtime.ErrMismatch)
				var m *runtime.MismatchError
				r.ErrorAs(err, &m)
				r.NotEqual(m.Call, m.OtherDid)
				r.ErrorContains(err, m.Error())
				r.NotContains(err.Error(), "ended early", "what counts is how they differ")
				for _, text := range []string{m.Call, m.OtherDid} {
					r.Contains(d.texts, text)
				}
			})
		})
	}
}

func TestBlocksOfUnlikeLengthsReturnErrMismatch(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		in := make([]byte, 3+r.Me%2) // rank 1 has one more than rank 0 expects
		counts := make([]int, r.N)
		for i := range counts {
			counts[i] = 3
		}
		err := collectives.GatherV(ctx, r.World, 0, in[:3+r.Me%2], make([]byte, 3*r.N), collectives.Blocks{Counts: counts})
		if err == nil {
			err = r.World.Barrier(ctx)
		}
		r.ErrorIs(err, runtime.ErrMismatch)
	})
}

// TestBlockThatTheSenderTakesForEmptyReturnsErrMismatch has a member wait for a block that its
// sender does not have.
func TestBlockThatTheSenderTakesForEmptyReturnsErrMismatch(t *testing.T) {
	each := func(r *testjob.Rank, count int) collectives.Blocks {
		b := collectives.Blocks{Counts: make([]int, r.N)}
		for i := range b.Counts {
			if i != r.Me {
				b.Counts[i] = count
			}
		}
		return b
	}
	for name, call := range map[string]func(ctx context.Context, r *testjob.Rank) error{
		"all to all": func(ctx context.Context, r *testjob.Rank) error {
			out, in := each(r, 2), each(r, 2)
			if r.Me == 0 {
				out.Counts[1] = 0
			}
			x := make([]int32, 2*r.N)
			return collectives.AllToAllV(ctx, r.World, x, out, make([]int32, 2*r.N), in)
		},
		"scatter": func(ctx context.Context, r *testjob.Rank) error {
			mine := make([]int32, 3)
			if r.Me == 0 {
				return collectives.ScatterV(ctx, r.World, 0, make([]int32, 2*r.N), each(r, 0), mine[:0])
			}
			return collectives.ScatterV(ctx, r.World, 0, nil, collectives.Blocks{}, mine)
		},
		"neighbors": func(ctx context.Context, r *testjob.Rank) error {
			ring, err := collectives.NewCart(ctx, r.World, []int{r.N}, []bool{true})
			r.NoError(err)
			blocks := make([]int32, 4)
			if r.Me == 0 {
				blocks = nil
			}
			return collectives.NeighborAllToAll(ctx, ring.Graph, blocks, append([]int32{}, blocks...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
				err := call(ctx, r)
				if err == nil { // it had nothing to wait for: its next call returns the error
					err = collectives.Barrier(ctx, r.World)
				}
				if err == nil {
					err = collectives.Barrier(ctx, r.World)
				}
				r.Error(err)
				var named *runtime.MismatchError
				if !errors.As(err, &named) {
					r.ErrorIs(err, runtime.ErrTeamBroken)
					r.ErrorContains(err, "match")
				}
			})
		})
	}
}

// Members choose by whether blocks follow one another.
func TestOffsetsAtSomeMembersReturnErrMismatch(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		b := collectives.Blocks{Counts: make([]int, r.N)}
		for i := range b.Counts {
			b.Counts[i] = 1
		}
		if r.Me == 1 {
			b.Offsets = make([]int, r.N)
			for i := range b.Offsets {
				b.Offsets[i] = i
			}
		}
		err := collectives.AllGatherV(ctx, r.World, make([]int64, 1), make([]int64, r.N), b)
		r.ErrorIs(err, runtime.ErrMismatch)
	})
}

func TestDeadRankEndsCallsOfAllRanks(t *testing.T) {
	for _, count := range []int{1, 1 << 16} {
		testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
			err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
				in, out := make([]float64, count), make([]float64, count)
				var err error
				for calls := 0; err == nil; calls++ {
					if r.Me == 2 && calls == 3 {
						r.Die()
					}
					err = collectives.AllReduce(ctx, r.World, collectives.Sum[float64](), in, out)
				}
				r.ErrorIs(err, runtime.ErrRankDead)
				var dead *runtime.RankError
				r.ErrorAs(err, &dead)
				r.Equal(2, dead.Rank)
				var op *collectives.OpError
				r.ErrorAs(err, &op)
				r.Equal(r.Me, op.Rank)
			})
			require.ErrorContains(t, err, "rank 2: body ended without returning")
			require.NotContains(t, err.Error(), "rank 0: body")
		})
	}
}

func TestCanceledMemberEndsCallsOfAllMembers(t *testing.T) {
	cause := errors.New("enough")
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			mine, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			if r.Me == 1 {
				time.AfterFunc(3*time.Millisecond, func() { cancel(cause) })
			}
			data := make([]int32, 1<<14)
			for err == nil {
				err = collectives.AllReduce(mine, team, collectives.Sum[int32](), data, data)
			}
			if r.Me == 1 {
				r.ErrorIs(err, cause)
				return
			}
			r.ErrorIs(err, runtime.ErrTeamBroken)
			r.ErrorContains(err, cause.Error())
			r.ErrorIs(collectives.Broadcast(ctx, team, 0, data), runtime.ErrTeamBroken)
		})
	})
}

func TestCallsCheckArgumentsBeforeTheyCommunicate(t *testing.T) {
	testjob.All(t, 2, func(ctx context.Context, r *testjob.Rank) {
		sum, n := collectives.Sum[int](), r.N
		x, blocks := make([]int, 4*n+1), collectives.Blocks{Counts: make([]int, n+1)}
		for name, wrong := range map[string]struct {
			err  error
			want error
		}{
			"length":      {collectives.AllReduce(ctx, r.World, sum, x[:2], x[:3]), collectives.ErrLength},
			"overlap":     {collectives.AllReduce(ctx, r.World, sum, x[:2], x[1:3]), collectives.ErrOverlap},
			"no operator": {collectives.AllReduce(ctx, r.World, collectives.Op[int]{}, x, x), collectives.ErrOp},
			"no algorithm": {collectives.AllReduce(ctx, r.World, sum, x, x, collectives.WithAlgorithm("magic")),
				collectives.ErrAlgorithm},
			"root":          {collectives.Broadcast(ctx, r.World, n, x), collectives.ErrRange},
			"negative root": {collectives.Broadcast(ctx, r.World, -1, x), collectives.ErrRange},
			"pointers":      {collectives.Broadcast(ctx, r.World, 0, []*int{}), collectives.ErrType},
			"no size":       {collectives.Broadcast(ctx, r.World, 0, []struct{}{{}}), collectives.ErrType},
			"gather":        {collectives.AllGather(ctx, r.World, x[:2], x[2:]), collectives.ErrLength},
			"in no place":   {collectives.AllGather(ctx, r.World, x[r.Right():][:1], x[:n]), collectives.ErrOverlap},
			"counts":        {collectives.AllGatherV(ctx, r.World, x[:1], x[2:], blocks), collectives.ErrLength},
			"all to all":    {collectives.AllToAll(ctx, r.World, x[:n], x[:n]), collectives.ErrOverlap},
			"nil team":      {collectives.AllReduce(ctx, nil, sum, x, x), runtime.ErrTeam},
			"empty call":    {startErr(ctx, r.World, collectives.Call{}), errors.ErrUnsupported},
		} {
			r.ErrorIs(wrong.err, wrong.want, name)
			var op *collectives.OpError
			r.ErrorAs(wrong.err, &op, name)
		}
		r.NoError(collectives.AllReduce(ctx, r.World, sum, x, x), "the team is none the worse")
	})
}

func startErr(ctx context.Context, t *runtime.Team, c collectives.Call) error {
	_, err := collectives.Start(ctx, t, c)
	return err
}
