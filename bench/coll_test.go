//go:build linux

package main

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/runtime"
)

func TestSizesAreThoseOfVectorsOrBlocks(t *testing.T) {
	vector, cut := collective{}, collective{cut: true}
	require.Equal(t, 512, vector.count(4096, 4))
	require.Equal(t, 128, cut.count(4096, 4))
	require.Equal(t, 1, vector.count(1, 4), "one element at least")
	require.Equal(t, 1, cut.count(8, 4))
}

// TestEveryCallHasNewInput checks the inputs of a batch's calls, with inputs that
// are rewritten ahead of each call and with several inputs.
func TestEveryCallHasNewInput(t *testing.T) {
	for size, inputs := range map[int]int{rewriteMax: 1, rewriteMax + elementSize: several, severalMax + elementSize: 1} {
		err := runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
			h, err := newHarness(ctx, job, knobs{})
			if err != nil {
				return err
			}
			c := collective{in: one, out: one}
			made, err := c.prepare(h, size, inArena)
			if err != nil {
				return err
			}
			require.Len(t, made.in, inputs)
			var last, first []float64 // at the ends of the inputs
			run := made.task(func(_ context.Context, in, _ []float64) error {
				first, last = append(first, in[0]), append(last, in[(len(in)*elementSize-1)/lineSize*lineSize/elementSize])
				return nil
			})
			n := max(inputs, 2)
			if inputs == 1 && size > rewriteMax {
				require.Equal(t, 1, run.most, "a batch is one call")
				n = 1
			}
			for range 3 {
				run.prepare()
				if err := run.run(ctx, n); err != nil {
					return err
				}
			}
			for _, seen := range [][]float64{first, last} {
				if inputs > 1 { // each input was rewritten three times
					slices.Sort(seen)
					require.Len(t, slices.Compact(seen), 3)
					continue
				}
				require.Len(t, slices.Compact(slices.Clone(seen)), 3*n, "size %d", size)
			}
			if err := run.free(ctx); err != nil {
				return err
			}
			return h.close(ctx)
		}, runtime.WithProvider("loop"))
		require.NoError(t, err)
	}
}

// TestCollectivesThatDoNotFitAreLeftOut: the memory of all ranks together is
// bounded.
func TestCollectivesThatDoNotFitAreLeftOut(t *testing.T) {
	require.NoError(t, runtime.RunLocal(context.Background(), 2, func(ctx context.Context, job *runtime.Job) error {
		h, err := newHarness(ctx, job, knobs{})
		if err != nil {
			return err
		}
		c := collective{in: each, out: each}
		_, err = c.prepare(h, roomMax/4, inArena)
		require.ErrorIs(t, err, errSkip)
		return h.close(ctx)
	}, runtime.WithProvider("loop")))
}
