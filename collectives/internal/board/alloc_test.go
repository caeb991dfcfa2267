package board

import (
	"context"
	"fmt"
	goruntime "runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testwatch"
)

// TestCallsAllocateNothing: a wait that sleeps allocates, but that is rare, and
// rounded away.
func TestCallsAllocateNothing(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	const runs = 200
	for _, n := range []int{2, 3} {
		for k := range kinds {
			for _, elems := range []int{1, 100, 1000} {
				for placed := range 2 {
					c := call{kind: k, elems: elems, op: operators[0], placed: -placed}
					r := newRig(t, n, tiny)
					ctx := context.Background()
					made := make(chan error, n)
					for _, b := range r.boards[1:] {
						a := c.args(r, b.rank)
						go func() {
							for i := range runs + 1 {
								if err := c.make(ctx, b, uint64(i), a); err != nil {
									made <- err
									return
								}
							}
							made <- nil
						}()
					}
					a, i := c.args(r, 0), uint64(0)
					allocs := testing.AllocsPerRun(runs, func() {
						if err := c.make(ctx, r.boards[0], i, a); err != nil {
							t.Error(err)
						}
						i++
					})
					for range n - 1 {
						require.NoError(t, <-made)
					}
					require.Zero(t, allocs, fmt.Sprint(c))
				}
			}
		}
	}
}

// TestBoardOfFewTurnsIsSmall counts the bytes of a new board that makes one short call as a member other than the
// first, of as many members as share a center.
func TestBoardOfFewTurnsIsSmall(t *testing.T) {
	if testwatch.Race {
		t.Skip("the race detector allocates")
	}
	const members = 32
	mem := lineAligned(members * HeadSize)
	least := ^uint64(0) // some other goroutine may allocate meanwhile
	for range 10 {
		clear(mem)
		var before, after goruntime.MemStats
		goruntime.ReadMemStats(&before)
		b, err := New(Config{Rank: 1, Size: members, Mem: mem[HeadSize:], Crowded: true,
			Buffers: func(int) ([]byte, error) { return nil, ErrCorrupt },
			Find: func(_ context.Context, which []int, found Found) error {
				require.Equal(t, []int{0}, which)
				return found(0, mem, nil)
			},
			Await: func(_ context.Context, ready func() bool) error {
				headAt(mem).release.turn.Store(1) // as the first member does
				require.True(t, ready())
				return nil
			}})
		require.NoError(t, err)
		require.NoError(t, b.AllReduce(t.Context(), 1, 1, &Args{Elem: 8, Send: make([]byte, 8), Recv: make([]byte, 8)}))
		goruntime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	require.Less(t, least, uint64(2<<10))
}
