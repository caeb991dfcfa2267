package board

import (
	"context"
	"fmt"
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
