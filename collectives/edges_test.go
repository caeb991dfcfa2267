package collectives_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/team"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
	"github.com/gopgas/gopgas/runtime"
)

// circle is a ring of all ranks.
func circle(ctx context.Context, r *testjob.Rank, t *runtime.Team) *collectives.Graph {
	cart, err := collectives.NewCart(ctx, t, []int{r.N}, []bool{true})
	r.NoError(err)
	return cart.Graph
}

// TestMembersOfARingExchangeBlocksOfAllLengths sends blocks from slices and from the heap, by every
// algorithm, among other calls of the team. The lengths are those at which the way changes.
// Each member overwrites its input as soon as a call returns.
func TestMembersOfARingExchangeBlocksOfAllLengths(t *testing.T) {
	testjob.Each(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			const most = 600_000
			g := circle(ctx, r, r.World)
			b, err := collectives.Alloc[byte](r.World, 2*most)
			r.NoError(err)
			names := collectives.NeighborAllToAllCall(g, []int{1, 2}, make([]int, 2)).Algorithms(r.World)
			r.Contains(names, "hops")
			r.Equal(c.Mapped() || r.N == 1 && slices.Contains(names, "board"), slices.Contains(names, "board"))
			for i, size := range []int{0, 1, 32, 33, 40, 41, 4096, 8191, 8192, 65536, 262_145, most} {
				in := b.Mem()[:2*size]
				if i%2 == 0 {
					in = make([]byte, 2*size)
				}
				for _, name := range append(names, "") {
					for k := range in {
						in[k] = byte(r.Me*7 + k/max(size, 1)*3 + k)
					}
					out := make([]byte, 2*size)
					r.NoError(collectives.NeighborAllToAll(ctx, g, in, out, collectives.WithAlgorithm(name)))
					clear(in)
					for side, from := range []int{r.Left(), r.Right()} { // the data that it sent in the opposite direction
						for k := 0; k < size; k += max(1, size/997) {
							r.Equal(byte(from*7+(1-side)*3+(1-side)*size+k), out[side*size+k], "%s, %d bytes", name, size)
						}
					}
				}
				x := []int{r.Me}
				r.NoError(collectives.AllReduce(ctx, r.World, collectives.Max[int](), x, x))
				r.Equal(r.N-1, x[0])
			}
			r.NoError(r.World.Barrier(ctx))
			r.NoError(b.Free())
		})
	})
}

// TestStartedNeighborCallsRunInOrderWithOtherCalls starts planned exchanges along two
// graphs, and a sum after each.
func TestStartedNeighborCallsRunInOrderWithOtherCalls(t *testing.T) {
	testjob.Each(t, 1, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			ring := circle(ctx, r, r.World)
			back, err := collectives.NewGraph(ctx, r.World, []int{r.Right()}, []int{r.Left()})
			r.NoError(err)
			const calls, count = 40, 700
			var requests []*collectives.Request
			outs, sums := make([][]int, calls), make([][]int, calls)
			for i := range calls {
				in := make([]int, 2*count)
				for k := range in {
					in[k] = r.Me<<32 | i<<16 | k
				}
				outs[i], sums[i] = make([]int, 2*count), []int{i}
				call := collectives.NeighborAllToAllCall(ring, in, outs[i])
				if i%2 == 1 {
					call = collectives.NeighborAllGatherVCall(back, in, outs[i], collectives.Blocks{Counts: []int{2 * count}})
				}
				plan, err := collectives.Plan(ctx, r.World, call)
				r.NoError(err)
				req, err := plan.Start(ctx)
				r.NoError(err)
				requests = append(requests, req)
				req, err = collectives.Start(ctx, r.World, collectives.AllReduceCall(collectives.Sum[int](), sums[i], sums[i]))
				r.NoError(err)
				requests = append(requests, req)
			}
			for _, req := range requests {
				r.NoError(req.Wait(ctx))
			}
			for i, out := range outs {
				r.Equal(r.N*i, sums[i][0])
				for k, got := range out {
					want := []int{r.Left(), r.Right()}[k/count]<<32 | i<<16 | (k+count)%(2*count)
					if i%2 == 1 {
						want = r.Right()<<32 | i<<16 | k
					}
					if got != want {
						r.Equal(want, got, "call %d, element %d", i, k)
					}
				}
			}
		})
	})
}

// TestLaterGraphsTakeNoMoreMemory makes graphs between the same members, which use the
// same queues.
func TestLaterGraphsTakeNoMoreMemory(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 3}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		var used int64
		for i := range 20 {
			g, out := circle(ctx, r, r.World), make([]int, 2)
			r.NoError(collectives.NeighborAllToAll(ctx, g, []int{r.Me, r.Me}, out))
			r.Equal([]int{r.Left(), r.Right()}, out)
			r.NoError(r.World.Barrier(ctx))
			now := team.Of(r.World).Arena().Used()
			if i > 0 {
				r.Equal(used, now)
			}
			used = now
		}
	})
}

// TestEndsOfAnEdgeThatDisagreeAreNamed has rank 0 send one element less than rank 1
// expects.
func TestEndsOfAnEdgeThatDisagreeAreNamed(t *testing.T) {
	testjob.EachTransport(t, 2, func(t *testing.T, c testjob.Config) {
		for _, count := range []int{1, 3, 1000, 100_000} {
			c.Run(t, func(ctx context.Context, r *testjob.Rank) {
				g := circle(ctx, r, r.World)
				to, from := collectives.Blocks{Counts: []int{count, count}}, collectives.Blocks{Counts: []int{count, count}}
				if r.Me == 0 {
					to.Counts[1]--
				}
				x := make([]int64, 2*count)
				err := collectives.NeighborAllToAllV(ctx, g, x, to, make([]int64, 2*count), from)
				if err == nil {
					err = r.World.Barrier(ctx)
				}
				var m *runtime.MismatchError
				if r.Me == 1 {
					r.ErrorAs(err, &m)
					r.ElementsMatch([]int{0, 1}, []int{m.Rank, m.Other}, "whichever finds it first")
					r.ErrorContains(err, "with one of")
				}
				r.Error(err)
			})
		}
	})
}

func TestLoopWithTwoLengthsReturnsErrLength(t *testing.T) {
	testjob.All(t, 1, func(ctx context.Context, r *testjob.Rank) {
		g, err := collectives.NewGraph(ctx, r.World, []int{r.Left(), r.Me, r.Me}, []int{r.Me, r.Right(), r.Me})
		r.NoError(err)
		x, good, bad := make([]int, 6), collectives.Blocks{Counts: []int{1, 1, 1}}, collectives.Blocks{Counts: []int{1, 1, 2}}
		out := make([]int, 6)
		r.ErrorIs(collectives.NeighborAllToAllV(ctx, g, x, good, out, bad), collectives.ErrLength)
		r.ErrorIs(collectives.NeighborAllToAllV(ctx, g, x, bad, out, good), collectives.ErrLength)
		r.ErrorIs(collectives.NeighborAllGatherV(ctx, g, x[:1], out, bad), collectives.ErrLength)
		r.NoError(collectives.NeighborAllGatherV(ctx, g, x[:1], out, good), "the team is none the worse")
	})
}

// TestMismatchErrorNamesNeighborCallsThatDiffer has a member call along another graph, or make
// another call, on edges that were never used and on used ones.
func TestMismatchErrorNamesNeighborCallsThatDiffer(t *testing.T) {
	testjob.EachTransport(t, 3, func(t *testing.T, c testjob.Config) {
		t.Parallel() // members compare their calls after a wait
		for _, used := range []bool{false, true} {
			for _, gathers := range []bool{false, true} {
				c.Run(t, func(ctx context.Context, r *testjob.Rank) {
					g, other := circle(ctx, r, r.World), circle(ctx, r, r.World)
					out := make([]int32, 2)
					var err error
					if used {
						err = collectives.NeighborAllToAll(ctx, g, []int32{1, 2}, out)
					}
					switch {
					case err != nil: // other members are ahead, and found the difference
					case r.Me != 1:
						err = collectives.NeighborAllToAll(ctx, g, []int32{1, 2}, out)
					case gathers:
						err = collectives.AllGather(ctx, r.World, []int32{1}, make([]int32, 3))
					default:
						err = collectives.NeighborAllToAll(ctx, other, []int32{1, 2}, out)
					}
					r.ErrorIs(err, runtime.ErrMismatch)
					var m *runtime.MismatchError
					r.ErrorAs(err, &m)
					r.NotEqual(m.Call, m.OtherDid)
				})
			}
		}
	})
}

// TestDeadRankEndsNeighborCallsOfAllRanks kills a rank. The exchanges of its neighbors
// end, and those of all members that wait for a neighbor.
func TestDeadRankEndsNeighborCallsOfAllRanks(t *testing.T) {
	for _, count := range []int{1, 1 << 16} {
		testjob.EachTransport(t, 5, func(t *testing.T, c testjob.Config) {
			err := c.Try(t, func(ctx context.Context, r *testjob.Rank) {
				g, in, out := circle(ctx, r, r.World), make([]int64, 2*count), make([]int64, 2*count)
				var err error
				for calls := 0; err == nil; calls++ {
					if r.Me == 2 && calls == 3 {
						r.Die()
					}
					err = collectives.NeighborAllToAll(ctx, g, in, out)
				}
				r.ErrorIs(err, runtime.ErrRankDead)
			})
			require.ErrorContains(t, err, "rank 2: body ended without returning")
			require.NotContains(t, err.Error(), "rank 0: body")
		})
	}
}

func TestCanceledMemberEndsNeighborCallsOfAllMembers(t *testing.T) {
	cause := errors.New("enough")
	testjob.EachTransport(t, 4, func(t *testing.T, c testjob.Config) {
		c.Run(t, func(ctx context.Context, r *testjob.Rank) {
			team, err := r.World.Split(ctx, 0, 0)
			r.NoError(err)
			g := circle(ctx, r, team)
			r.NoError(r.World.Barrier(ctx)) // no rank is in NewCart when rank 1 breaks the team
			mine, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			if r.Me == 1 {
				time.AfterFunc(time.Duration(rand.IntN(3000))*time.Microsecond, func() { cancel(cause) })
			}
			in, out := make([]int32, 1<<14), make([]int32, 1<<14)
			for err == nil {
				err = collectives.NeighborAllToAll(mine, g, in, out)
			}
			if r.Me == 1 {
				r.ErrorIs(err, cause)
				return
			}
			r.ErrorIs(err, runtime.ErrTeamBroken)
			r.ErrorContains(err, cause.Error())
		})
	})
}

// exchanges go around among processes, from slices and in place.
func exchanges(ctx context.Context, r *testjob.Rank) {
	g := circle(ctx, r, r.World)
	for _, count := range []int{1, 500, 100_000} {
		b, err := collectives.Alloc[int64](r.World, 2*count)
		r.NoError(err)
		rounds := testwatch.Rounds(20)
		if count > 1000 {
			rounds = testwatch.Rounds(5)
		}
		for i, in := range [][]int64{make([]int64, 2*count), b.Mem()} {
			for round := range rounds {
				for k := range in {
					in[k] = int64(r.Me<<40 | k<<8 | round)
				}
				out := make([]int64, 2*count)
				r.NoError(collectives.NeighborAllToAll(ctx, g, in, out))
				clear(in)
				for k, got := range out {
					from := []int{r.Left(), r.Right()}[k/count]
					if want := int64(from<<40 | (k+count)%(2*count)<<8 | round); got != want {
						r.Equal(want, got, "input %d, element %d of %d", i, k, 2*count)
					}
				}
			}
		}
	}
}

// torn has rank 1 die at a moment of its own among long exchanges.
func torn(ctx context.Context, r *testjob.Rank) {
	if r.Me == 1 {
		time.AfterFunc(time.Duration(rand.IntN(200))*time.Millisecond, r.Die)
	}
	b, err := collectives.Alloc[int64](r.World, 1<<18)
	r.NoError(err)
	ring, err := collectives.NewCart(ctx, r.World, []int{r.N}, []bool{true})
	out := make([]int64, 1<<18)
	for i := 0; err == nil; i++ {
		in := b.Mem()
		if i%2 == 0 {
			in = make([]int64, 1<<18)
		}
		err = collectives.NeighborAllToAll(ctx, ring.Graph, in, out)
	}
	r.ErrorIs(err, runtime.ErrRankDead)
}

func TestKilledProcessEndsLongNeighborCallsOfAllRanks(t *testing.T) {
	for _, job := range testjob.Processes(5) {
		t.Run(job.String(), func(t *testing.T) {
			out := job.Try(t, "torn")
			require.Equal(t, 137, out.ExitCode, "%s\n%s", out.Summary(), out.Output)
			require.NotContains(t, out.Output, "Error Trace", "a survivor learned something else")
		})
	}
}

// TestThirtyMembersExchangeWithAllMembers has more edges at a member than there are
// cores to serve them.
func TestThirtyMembersExchangeWithAllMembers(t *testing.T) {
	testjob.Config{Provider: "loop", Ranks: 30}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		allMembers := make([]int, r.N)
		for i := range allMembers {
			allMembers[i] = i
		}
		g, err := collectives.NewGraph(ctx, r.World, allMembers, allMembers)
		r.NoError(err)
		for round := range testwatch.Rounds(5) {
			for _, count := range []int{1, 3000} {
				in, out := make([]int32, r.N*count), make([]int32, r.N*count)
				for i := range in {
					in[i] = int32(r.Me<<16 | i/count<<8 | round)
				}
				r.NoError(collectives.NeighborAllToAll(ctx, g, in, out))
				for i, got := range out {
					if want := int32(i/count<<16 | r.Me<<8 | round); got != want {
						r.Equal(want, got, "element %d of %d", i, count)
					}
				}
			}
		}
	})
}

func TestProcessesExchangeBlocksAlongEdges(t *testing.T) {
	for _, job := range append(testjob.Processes(5), testjob.Processes(2)...) {
		t.Run(job.String(), func(t *testing.T) { job.Run(t, "exchanges") })
	}
}
