package collectives_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/gopgas/gopgas/collectives"
	"github.com/gopgas/gopgas/internal/mutant"
	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/internal/testwatch"
)

// A repeated call is one that all ranks make again and again.
type repeated struct {
	name string
	make func(r *testjob.Rank) func(ctx context.Context) error
}

func repeatedCalls(count int) []repeated {
	return []repeated{
		{"AllReduce", func(r *testjob.Rank) func(context.Context) error {
			in, out := make([]float64, count), make([]float64, count)
			return func(ctx context.Context) error {
				return collectives.AllReduce(ctx, r.World, collectives.Sum[float64](), in, out)
			}
		}},
		{"AllReduce of places", func(r *testjob.Rank) func(context.Context) error {
			in, out := make([]collectives.Loc[float32], count), make([]collectives.Loc[float32], count)
			return func(ctx context.Context) error {
				return collectives.AllReduce(ctx, r.World, collectives.MinLoc[float32](), in, out)
			}
		}},
		{"Broadcast", func(r *testjob.Rank) func(context.Context) error {
			data := make([]int32, count)
			return func(ctx context.Context) error { return collectives.Broadcast(ctx, r.World, 0, data) }
		}},
		{"Reduce", func(r *testjob.Rank) func(context.Context) error {
			data := make([]int32, count)
			return func(ctx context.Context) error {
				return collectives.Reduce(ctx, r.World, 0, collectives.Max[int32](), data, data)
			}
		}},
		{"AllGather", func(r *testjob.Rank) func(context.Context) error {
			in, out := make([]int64, count), make([]int64, r.N*count)
			return func(ctx context.Context) error { return collectives.AllGather(ctx, r.World, in, out) }
		}},
		{"AllGatherV", func(r *testjob.Rank) func(context.Context) error {
			blocks := collectives.Blocks{Counts: make([]int, r.N)}
			for i := range blocks.Counts {
				blocks.Counts[i] = count
			}
			in, out := make([]int64, count), make([]int64, r.N*count)
			return func(ctx context.Context) error { return collectives.AllGatherV(ctx, r.World, in, out, blocks) }
		}},
		{"ReduceScatter", func(r *testjob.Rank) func(context.Context) error {
			in, out := make([]float32, r.N*count), make([]float32, count)
			return func(ctx context.Context) error {
				return collectives.ReduceScatter(ctx, r.World, collectives.Sum[float32](), in, out)
			}
		}},
		{"AllToAll", func(r *testjob.Rank) func(context.Context) error {
			in, out := make([]byte, r.N*count), make([]byte, r.N*count)
			return func(ctx context.Context) error { return collectives.AllToAll(ctx, r.World, in, out) }
		}},
		{"NeighborAllToAll", func(r *testjob.Rank) func(context.Context) error {
			ring, err := collectives.NewCart(r.Job.Context(), r.World, []int{r.N}, []bool{true})
			r.NoError(err)
			in, out := make([]int16, 2*count), make([]int16, 2*count)
			return func(ctx context.Context) error { return collectives.NeighborAllToAll(ctx, ring.Graph, in, out) }
		}},
		{"NeighborAllGatherV", func(r *testjob.Rank) func(context.Context) error {
			ring, err := collectives.NewCart(r.Job.Context(), r.World, []int{r.N}, []bool{true})
			r.NoError(err)
			in, out, from := make([]int16, count), make([]int16, 2*count), collectives.Blocks{Counts: []int{count, count}}
			return func(ctx context.Context) error {
				return collectives.NeighborAllGatherV(ctx, ring.Graph, in, out, from)
			}
		}},
		{"Scan", func(r *testjob.Rank) func(context.Context) error {
			data := make([]int16, count)
			return func(ctx context.Context) error {
				return collectives.Scan(ctx, r.World, collectives.Sum[int16](), data, data)
			}
		}},
		{"a plan", func(r *testjob.Rank) func(context.Context) error {
			data := make([]int64, count)
			plan, err := collectives.Plan(r.Job.Context(), r.World, collectives.AllReduceCall(collectives.Xor[int64](), data, data))
			r.NoError(err)
			return plan.Run
		}},
	}
}

// TestBlockingCallsAllocateNothing counts the allocations of all ranks together,
// since they share a process. A member that waits may park, which allocates.
func TestBlockingCallsAllocateNothing(t *testing.T) {
	if testwatch.Race || mutant.Hesitates {
		t.Skip("the race detector allocates, and so does a rank that waits for long")
	}
	for _, count := range []int{1, 3000} {
		for _, call := range repeatedCalls(count) {
			t.Run(fmt.Sprint(call.name, " of ", count), func(t *testing.T) {
				for _, c := range []testjob.Config{{Provider: "loop", Ranks: 1}, {Provider: "loop", Ranks: 2},
					{Provider: "loop", Queued: true, Ranks: 2}, {Provider: "auto", Ranks: 3, Hosts: "aab"}} {
					c.Run(t, func(ctx context.Context, r *testjob.Rank) {
						again := call.make(r)
						one := func() { r.NoError(again(ctx)) }
						for range 50 {
							one()
						}
						allocs := r.Allocs(50, one)
						if r.N == 1 {
							r.Zero(allocs)
						} else {
							r.LessOrEqual(allocs, 8.0)
						}
						t.Logf("%v: %v", c, allocs)
					})
				}
			})
		}
	}
}

// Two members could both combine all elements, which saves a wait.
func TestMembersShareTheElementsOfAnOperator(t *testing.T) {
	const count = 20_000
	testjob.Config{Provider: "loop", Ranks: 2}.Run(t, func(ctx context.Context, r *testjob.Rank) {
		calls, in, out := 0, make([]int64, count), make([]int64, count)
		for i := range in {
			in[i] = int64(i * (r.Me + 1))
		}
		sum := collectives.NewOp("sum", true, func(a, b int64) int64 { calls++; return a + b })
		r.NoError(collectives.AllReduce(ctx, r.World, sum, in, out))
		r.Equal(count/2, calls)
		for i := range out {
			r.EqualValues(3*i, out[i])
		}
	})
}

// A member that waited for the place of the root's buffer would wait for the root.
func TestMembersGatherShortBlocksAheadOfTheRoot(t *testing.T) {
	for _, ranks := range []int{2, 3} {
		ahead := make(chan struct{}, ranks)
		testjob.Config{Provider: "loop", Ranks: ranks}.Run(t, func(ctx context.Context, r *testjob.Rank) {
			in, out := make([]byte, 16<<10), make([]byte, ranks*16<<10)
			r.NoError(collectives.Barrier(ctx, r.World))
			r.NoError(collectives.Gather(ctx, r.World, 0, in, out)) // makes the board
			if r.Me == 0 {
				for range ranks - 1 {
					select {
					case <-ahead:
					case <-ctx.Done():
						r.NoError(context.Cause(ctx))
						return
					}
				}
			}
			r.NoError(collectives.Gather(ctx, r.World, 0, in, out))
			ahead <- struct{}{}
		})
	}
}
