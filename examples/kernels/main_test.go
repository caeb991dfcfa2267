package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gopgas/gopgas/internal/testjob"
	"github.com/gopgas/gopgas/runtime"
)

const testOrder = 24

func TestKernelsVerifyThemselves(t *testing.T) {
	for _, provider := range []string{"loop", "tcp"} {
		for _, n := range []int{1, 2, 3, 4, 6} {
			var out strings.Builder // rank 0 alone prints
			o := options{kernel: "all", order: testOrder, iterations: 3, out: &out}
			require.NoError(t, testjob.RunLocal(t.Context(), n, o.run, runtime.WithProvider(provider)), "%s, %d ranks", provider, n)
			require.Equal(t, len(kernels), strings.Count(out.String(), "verified"), out.String())
		}
	}
}

// values are the results of a kernel by the place of each in the grid or matrix.
type values map[[2]int]float64

// result adds this rank's values.
func (v values) result(k kernel) {
	switch k := k.(type) {
	case *stencil:
		for i, x := range k.out {
			v[[2]int{k.top + i/k.cols, k.left + i%k.cols}] = x
		}
	case *transpose:
		for i, x := range k.b {
			v[[2]int{i % k.order, k.first + i/k.order}] = x
		}
	case *wavefront:
		first, _ := part(k.order, k.team.Rank(), k.team.Size())
		for i := range k.order {
			for j := range k.cols {
				v[[2]int{i, first + j}] = k.grid[i*(1+k.cols)+1+j]
			}
		}
	}
}

// TestResultsDoNotDependOnTheNumberOfRanks compares all values with those of one rank.
func TestResultsDoNotDependOnTheNumberOfRanks(t *testing.T) {
	for _, k := range kernels {
		run := func(n int) values {
			all := values{}
			var mu sync.Mutex
			require.NoError(t, testjob.RunLocal(t.Context(), n, func(ctx context.Context, job *runtime.Job) error {
				one, err := k.open(ctx, job.World(), testOrder)
				for i := 0; i < 4 && err == nil; i++ {
					err = one.iterate(ctx, i)
				}
				if err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				all.result(one)
				return nil
			}), "%s, %d ranks", k.name, n)
			return all
		}
		alone := run(1)
		require.Len(t, alone, testOrder*testOrder)
		for _, n := range []int{2, 3, 4, 6} {
			require.Equal(t, alone, run(n), "%s, %d ranks", k.name, n)
		}
	}
}

func TestVerifyFindsAMissingIteration(t *testing.T) {
	for _, k := range kernels {
		err := testjob.RunLocal(t.Context(), 2, func(ctx context.Context, job *runtime.Job) error {
			one, err := k.open(ctx, job.World(), testOrder)
			if err == nil {
				err = one.iterate(ctx, 0)
			}
			if err != nil {
				return err
			}
			return one.verify(ctx, 2)
		})
		require.ErrorContains(t, err, "want", k.name)
	}
}

func TestKernelsRefuseMoreRanksThanTheyCanDivideAmong(t *testing.T) {
	for _, k := range []string{"stencil", "wavefront"} {
		err := testjob.RunLocal(t.Context(), 4, options{kernel: k, order: 3, iterations: 1, out: io.Discard}.run)
		require.ErrorContains(t, err, fmt.Sprintf("%s: order 3", k))
	}
}
